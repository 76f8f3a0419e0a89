/** Reads JSON of a homeserver: people of other servers write it, so no field has surely the type that it should have. */

export type MatrixJson = Readonly<Record<string, unknown>>

const NOTHING: MatrixJson = {}

export const objectOf = (value: unknown): MatrixJson =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as MatrixJson) : NOTHING

export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

export const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

export const countOf = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined

/** The events of a list that can be read. */
export interface MatrixEvent {
  readonly id: string
  readonly type: string
  readonly sender: string
  /** Of a state event. */
  readonly stateKey?: string
  readonly sentAtMs: number
  readonly content: MatrixJson
  /** The event as it came. */
  readonly raw: MatrixJson
}

export function eventOf(value: unknown): MatrixEvent | undefined {
  const raw = objectOf(value)
  const [id, type, sender] = [textOf(raw['event_id']), textOf(raw['type']), textOf(raw['sender'])]
  if (id === undefined || type === undefined || sender === undefined) return undefined
  const stateKey = textOf(raw['state_key'])
  return {
    id,
    type,
    sender,
    ...(stateKey !== undefined && { stateKey }),
    sentAtMs: countOf(raw['origin_server_ts']) ?? 0,
    content: objectOf(raw['content']),
    raw,
  }
}

export const eventsOf = (value: unknown): MatrixEvent[] => listOf(value).flatMap((one) => eventOf(one) ?? [])

/** The relation of an event to an earlier one: `m.thread`, `m.replace`, `m.annotation`. */
export const relationOf = ({ content }: Pick<MatrixEvent, 'content'>): MatrixJson => objectOf(content['m.relates_to'])
