/**
 * The request that a backend gets: one message without loss. It is snake_case, because it is a wire form: `exec
 * format=json` and `stdio` write it as one line. Contract: fields may be added, never changed.
 */

export type SenderKind = 'person' | 'agent' | 'program' | 'schedule'

/** The sender. The door sets it from the authenticated identity, never from the message. */
export interface Sender {
  readonly kind: SenderKind
  readonly id: string
  readonly name: string
  /** The door the message came through: `http`, `discord`, `clock`, `mcp`. */
  readonly door: string
  /** The chat channel that the message came through. Only then `metadata.chat` of the message was written by the platform. */
  readonly channel?: string
}

export type RequestPartType = 'text' | 'file' | 'data'

export interface RequestPart {
  readonly type: RequestPartType
  readonly text?: string
  readonly mime_type?: string
  readonly uri?: string
  readonly data?: unknown
  /** The content of an inline file as base64. */
  readonly bytes?: string
  readonly filename?: string
  readonly metadata?: Readonly<Record<string, unknown>>
}

export interface Request {
  readonly workspace_id: string
  /** The sending workspace's id; empty for a person. */
  readonly caller_id: string
  readonly message_id: string
  readonly idempotency_key: string
  readonly task_id: string
  readonly context_id: string
  readonly parts: readonly RequestPart[]
  /** The JSON-RPC method of the call, in the caller's protocol version. */
  readonly method: string
  readonly sender: Sender
  /** The JSON-RPC request as it arrived, without push-notification credentials. */
  readonly raw: unknown
}

/** A backend's reply; `final: false` marks an intermediate chunk. */
export interface Response {
  readonly parts: readonly RequestPart[]
  readonly final: boolean
}

/** The common reply: one text part, final. */
export function textResponse(text: string): Response {
  return { parts: [{ type: 'text', text }], final: true }
}

/** Joins the text parts in order without a separator. File and data parts are skipped. */
export function joinText(parts: readonly RequestPart[]): string {
  let text = ''
  for (const part of parts) if (part.type === 'text') text += part.text ?? ''
  return text
}
