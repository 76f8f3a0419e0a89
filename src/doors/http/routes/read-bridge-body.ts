/**
 * Reads what a bridge sends (`api/bridges.ts`) into the types of the inbox seam. The schemas have checked all but the content
 * of parts; the error about a broken part names its place.
 */
import type { z } from 'zod'
import type { appendSchema, askSchema, beginSchema, settleSchema } from '../../../api/bridges.ts'
import type { Ask, LeaseKey, NumberedEvents, Outcome } from '../../../inbox/worker.ts'
import type { Part } from '../../../protocol/a2a.ts'
import { readPart } from '../../../protocol/part.ts'

type SentOutcome = z.output<typeof settleSchema>['outcome']
type SentDone = Extract<SentOutcome, { type: 'done' }>
type SentParts = SentDone['parts']
type SentArtifact = SentDone['artifacts'][number]
type SentStatusMessage = NonNullable<SentDone['said']>

export const toLeaseKey = (workspaceId: string, given: z.output<typeof beginSchema>['key']): LeaseKey => ({
  workspaceId,
  ...given,
})

// The casts below: a field that JSON left out is absent, not undefined, which zod's types cannot express.

export function toOutcome(given: SentOutcome): Outcome {
  if (given.type === 'dead') return { ...given, ...readArtifacts(given, 'outcome') } as Outcome
  if (given.type !== 'done') return given as Outcome
  const read = { parts: readParts(given.parts, 'outcome.parts'), ...readArtifacts(given, 'outcome') }
  return { ...given, ...read, ...readStatusMessage(given, 'outcome') } as Outcome
}

export function toEvents({ from, events: given, notes }: Omit<z.output<typeof appendSchema>, 'key'>): NumberedEvents {
  const read = given.map((one, index) => {
    const path = `events.${index}`
    if (one.type === 'artifact') return { ...one, artifact: readArtifact(one.artifact, `${path}.artifact`) }
    return one.type === 'status' ? { ...one, ...readStatusMessage(one, path) } : one
  })
  return { from, events: read, notes } as NumberedEvents
}

export function toAsk({ permission, ...given }: z.output<typeof askSchema>['question']): Ask {
  const kind = permission === undefined ? { kind: 'question' } : { kind: 'permission', ...permission }
  return { ...given, ...kind, parts: readParts(given.parts, 'question.parts') } as Ask
}

const readParts = (given: SentParts, path: string): Part[] =>
  given.map((part, index) => readPart(part, `${path}.${index}`))

const readArtifact = (given: SentArtifact, path: string) => ({
  ...given,
  parts: readParts(given.parts, `${path}.parts`),
})

const readArtifacts = (given: { artifacts?: SentArtifact[] | undefined }, path: string) =>
  given.artifacts && { artifacts: given.artifacts.map((one, at) => readArtifact(one, `${path}.artifacts.${at}`)) }

const readStatusMessage = (given: { said?: SentStatusMessage | undefined }, path: string) =>
  given.said && { said: { ...given.said, parts: readParts(given.said.parts, `${path}.said.parts`) } }
