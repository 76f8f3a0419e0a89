/**
 * The wire types of the Agent Client Protocol, taken from its official SDK. What Molecule sends must have exactly these
 * types, so a change of the protocol is a compile error. What an agent sends is `Unchecked`: the compiler knows the
 * names of its members, the code checks their values.
 *
 * The imports are types only: the connection is `../json-rpc.ts`, which codex and stdio use too. That of the SDK (2.4) drops
 * an update that its schema does not know, answers every stray line on stdout, has no limit of open requests, cancels by
 * `$/cancel_request`, and writes to the platform's stderr. It takes 5 to 21 us for an update (ours 0.6), and 42 ms and 16 MB
 * to load.
 */
import type {
  AgentNotificationParamsByMethod,
  AgentRequestParamsByMethod,
  PROTOCOL_VERSION as SDK_PROTOCOL_VERSION,
} from '@agentclientprotocol/sdk'
import { isJsonObject } from '../../../protocol/json.ts'

/** An SDK for another version of the protocol does not compile. */
export const PROTOCOL_VERSION: typeof SDK_PROTOCOL_VERSION = 1

/** The protocol no longer has `session/set_model`; older agents have nothing else to set a model with. */
type RequestParams = AgentRequestParamsByMethod & {
  readonly 'session/set_model': { readonly sessionId: string; readonly modelId: string }
}

/** The JSON-RPC connection to an agent, limited to the messages of the protocol. */
export interface AcpRpc {
  request<Method extends keyof RequestParams>(
    method: Method,
    params: RequestParams[Method],
    signal: AbortSignal,
  ): Promise<unknown>
  notify(method: 'session/cancel', params: AgentNotificationParamsByMethod['session/cancel']): Promise<boolean>
}

/**
 * A message that an agent sent, before its values are checked. Every member may be missing or have any type. Words of a
 * fixed list (`status`, `stopReason`) keep their type, because they are only compared, and a misspelled one is an error.
 */
export type Unchecked<Message> = { readonly [Key in KeyOf<Message>]?: UncheckedValue<ValueOf<Message, Key>> }

type KeyOf<Message> = Message extends unknown ? keyof Message : never
type ValueOf<Message, Key> = Message extends unknown ? (Key extends keyof Message ? Message[Key] : never) : never
type UncheckedValue<Value> = [Value] extends [string | null | undefined]
  ? string extends Value
    ? unknown
    : Value
  : unknown

/** The members of a message; none for a value that is no object. */
export function unchecked<Message>(value: unknown): Unchecked<Message> {
  return isJsonObject(value) ? (value as Unchecked<Message>) : {}
}
