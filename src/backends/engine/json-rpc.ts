/**
 * JSON-RPC 2.0 over the lines of a process that stays: requests with their answers, notifications both ways, and
 * requests from the other side. Invariant: every request is settled once: by its answer, its signal, or the end of the
 * process; nothing that waits outlives the process, and what may wait is limited.
 */
import { MoleculeError } from '../../errors.ts'
import type { Log } from '../../log.ts'
import { isJsonObject, parseJsonObject } from '../../protocol/json.ts'
import { JSON_RPC_CODES } from '../../protocol/json-rpc.ts'

/** Requests of ours without an answer yet, and requests of theirs that we have not answered. */
const PENDING_MAX = 256

/** An error that the other side answered with, as it is. */
export class RpcError extends Error {
  override readonly name = 'RpcError'
  readonly code: number
  readonly data: unknown

  constructor(code: number, message: string, data?: unknown) {
    super(message)
    this.code = code
    this.data = data
  }
}

export interface RpcOptions {
  /** False where it will never arrive. */
  readonly write: (text: string) => Promise<boolean>
  /** A message without an answer. Must not throw. */
  readonly onNotification: (method: string, params: unknown) => void
  /** Its result is the answer; an RpcError is answered as it is. The signal aborts when the process has ended. */
  readonly onRequest: (method: string, params: unknown, signal: AbortSignal) => Promise<unknown>
  readonly log: Log
  /** Some dialects (codex) leave `"jsonrpc": "2.0"` out. */
  readonly omitVersion?: boolean
}

export interface Rpc {
  /** For each line of the process; one that is no message is passed over and logged. */
  receive(line: string): void
  /** Rejects with RpcError for an error answered, MoleculeError when cancelled or the process is gone. */
  request(method: string, params: unknown, signal: AbortSignal): Promise<unknown>
  /** Resolves to whether it was taken. */
  notify(method: string, params: unknown): Promise<boolean>
  /** The process has ended: rejects all that waits, and what is asked later. */
  end(error: MoleculeError): void
}

interface PendingRequest {
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

export function createRpc(options: RpcOptions): Rpc {
  const pending = new Map<number, PendingRequest>()
  const ending = new AbortController()
  let gone: MoleculeError | undefined
  let lastId = 0
  let theirs = 0
  const send = (message: Record<string, unknown>) =>
    options.write(`${JSON.stringify(options.omitVersion ? message : { jsonrpc: '2.0', ...message })}\n`)

  const answer = async (id: unknown, method: string, params: unknown) => {
    theirs += 1
    const reply = theirs > PENDING_MAX ? { error: TOO_MANY } : await judged(options.onRequest, method, params)
    theirs -= 1
    await send({ id, ...reply })
  }
  const judged = async (onRequest: RpcOptions['onRequest'], method: string, params: unknown) => {
    try {
      return { result: (await onRequest(method, params, ending.signal)) ?? null }
    } catch (error) {
      return { error: toWire(error) }
    }
  }
  const settle = (message: Readonly<Record<string, unknown>>) => {
    const waiting = pending.get(Number(message['id']))
    if (waiting === undefined) return
    if (isJsonObject(message['error'])) waiting.reject(fromWire(message['error']))
    else waiting.resolve(message['result'])
  }

  return {
    receive(line) {
      const message = parseJsonObject(line)
      if (message === undefined) return logStrayLine(options.log, line)
      const { id, method } = message
      if (typeof method !== 'string') return settle(message)
      if (id === undefined || id === null) return options.onNotification(method, message['params'])
      void answer(id, method, message['params'])
    },
    request(method, params, signal) {
      if (gone !== undefined) return Promise.reject(gone)
      if (signal.aborted) return Promise.reject(canceled(method))
      if (pending.size >= PENDING_MAX) return Promise.reject(tooMany(method))
      lastId += 1
      const id = lastId
      const { promise, resolve, reject } = Promise.withResolvers<unknown>()
      const onAbort = () => reject(canceled(method))
      signal.addEventListener('abort', onAbort, { once: true })
      pending.set(id, { resolve, reject })
      void send({ id, method, params }).then((taken) => {
        if (!taken) reject(gone ?? writeFailed(method))
      })
      return promise.finally(() => {
        pending.delete(id)
        signal.removeEventListener('abort', onAbort)
      })
    },
    notify: (method, params) => send({ method, params }),
    end(error) {
      gone ??= error
      ending.abort(error)
      for (const waiting of pending.values()) waiting.reject(error)
    },
  }
}

/** For `onRequest`: we have no such method. */
export const unknownMethod = (method: string) =>
  new RpcError(JSON_RPC_CODES.methodNotFound, `method not found: ${method}`)

const TOO_MANY = { code: JSON_RPC_CODES.internalError, message: 'too many requests at once' }

/** Some agents print a word of greeting, or a warning, where only messages belong. */
function logStrayLine(log: Log, line: string): void {
  if (line.trim() !== '') log.debug({ line: line.slice(0, 200) }, 'a line of the agent is no message')
}

function toWire(error: unknown): { code: number; message: string; data?: unknown } {
  const message = error instanceof Error ? error.message : String(error)
  if (!(error instanceof RpcError)) return { code: JSON_RPC_CODES.internalError, message }
  return { code: error.code, message, ...(error.data !== undefined && { data: error.data }) }
}

function fromWire({ code, message, data }: Readonly<Record<string, unknown>>): RpcError {
  const words = typeof message === 'string' && message !== '' ? message : 'an error without a message'
  return new RpcError(typeof code === 'number' ? code : JSON_RPC_CODES.internalError, words, data)
}

const canceled = (method: string) => new MoleculeError('canceled', `${method} was cancelled`)

const tooMany = (method: string) =>
  new MoleculeError('internal', `${method}: ${PENDING_MAX} requests wait for an answer already`, { retryable: true })

const writeFailed = (method: string) =>
  new MoleculeError('exit', `${method} could not be handed to the agent: it reads nothing any more`, {
    retryable: true,
  })
