/**
 * JSON-RPC 2.0 over the lines of a process that keeps running: requests and notifications in both directions.
 * Invariant: every request settles exactly once, by its answer, its signal or the end of the process, and the number of
 * open requests is limited.
 * Not a library: vscode-jsonrpc frames with `Content-Length`, cancels with `$/cancelRequest` and knows no AbortSignal, so
 * its reader, its writer, the limits and the cancellation would have to be written here all the same. For the connection of
 * the ACP SDK, see `acp/wire.ts`.
 */
import { MoleculeError } from '../../errors.ts'
import type { Log } from '../../log.ts'
import type { RunningProcess } from '../../process/processes.ts'
import { isJsonObject, parseJsonObject } from '../../protocol/json.ts'
import { JSON_RPC_CODES } from '../../protocol/wire-errors.ts'
import { onAbort } from '../../wait.ts'

/** Open requests in each direction. A further request is answered with an error. */
const PENDING_MAX = 256

/** The error with which the other side answered. */
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
  /** Resolves to false if the text will never arrive. */
  readonly write: (text: string) => Promise<boolean>
  /** Must not throw. */
  readonly onNotification: (method: string, params: unknown) => void
  /** Its result is the answer. A thrown RpcError is sent unchanged. The signal aborts when the process has ended. */
  readonly onRequest: (method: string, params: unknown, signal: AbortSignal) => Promise<unknown>
  readonly log: Log
  /** True for agents that leave `"jsonrpc": "2.0"` out (codex). */
  readonly omitVersion?: boolean
}

export interface Rpc {
  /** Takes one line of the process. A line that is not a message is logged and ignored. */
  receive(line: string): void
  /** Rejects with RpcError if the answer is an error, with MoleculeError if cancelled or the process has ended. */
  request(method: string, params: unknown, signal: AbortSignal): Promise<unknown>
  /** Resolves to whether the process has taken the text. */
  notify(method: string, params: unknown): Promise<boolean>
  /** Call it when the process has ended. Rejects all open and all later requests. */
  end(error: MoleculeError): void
}

interface PendingRequest {
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

export function createRpc(options: RpcOptions): Rpc {
  const pending = new Map<number, PendingRequest>()
  const ending = new AbortController()
  let endError: MoleculeError | undefined
  let lastId = 0
  let openFromPeer = 0
  const send = (message: Record<string, unknown>) =>
    options.write(`${JSON.stringify(options.omitVersion ? message : { jsonrpc: '2.0', ...message })}\n`)

  const answer = async (id: unknown, method: string, params: unknown) => {
    openFromPeer += 1
    const reply =
      openFromPeer > PENDING_MAX ? { error: TOO_MANY } : await callOnRequest(options.onRequest, method, params)
    openFromPeer -= 1
    await send({ id, ...reply })
  }
  const callOnRequest = async (onRequest: RpcOptions['onRequest'], method: string, params: unknown) => {
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
      if (endError !== undefined) return Promise.reject(endError)
      if (signal.aborted) return Promise.reject(canceled(method))
      if (pending.size >= PENDING_MAX) return Promise.reject(tooMany(method))
      lastId += 1
      const id = lastId
      const { promise, resolve, reject } = Promise.withResolvers<unknown>()
      const release = onAbort(signal, () => reject(canceled(method)))
      pending.set(id, { resolve, reject })
      void send({ id, method, params }).then((taken) => {
        if (!taken) reject(endError ?? writeFailed(method))
      })
      return promise.finally(() => {
        pending.delete(id)
        release()
      })
    },
    notify: (method, params) => send({ method, params }),
    end(error) {
      endError ??= error
      ending.abort(error)
      for (const waiting of pending.values()) waiting.reject(error)
    },
  }
}

/** For `write`: ends a process that no longer reads, so that a request fails with the reason of that end. */
export async function writeOrEnd(running: RunningProcess, text: string): Promise<boolean> {
  if (await running.write(text)) return true
  await running.stop()
  await running.ended
  return false
}

/** The error that `onRequest` throws for a method that it does not have. */
export const unknownMethod = (method: string) =>
  new RpcError(JSON_RPC_CODES.methodNotFound, `method not found: ${method}`)

const TOO_MANY = { code: JSON_RPC_CODES.internalError, message: 'too many requests at once' }

/** Some agents print a greeting or a warning between their messages. */
function logStrayLine(log: Log, line: string): void {
  if (line.trim() !== '')
    log.debug({ line: line.slice(0, 200) }, 'the agent printed a line that is not a JSON-RPC message')
}

function toWire(error: unknown): { code: number; message: string; data?: unknown } {
  const message = error instanceof Error ? error.message : String(error)
  if (!(error instanceof RpcError)) return { code: JSON_RPC_CODES.internalError, message }
  return { code: error.code, message, data: error.data }
}

function fromWire({ code, message, data }: Readonly<Record<string, unknown>>): RpcError {
  const text = typeof message === 'string' && message !== '' ? message : 'an error without a message'
  return new RpcError(typeof code === 'number' ? code : JSON_RPC_CODES.internalError, text, data)
}

const canceled = (method: string) => new MoleculeError('canceled', `${method} was cancelled`)

const tooMany = (method: string) =>
  new MoleculeError('internal', `${method}: ${PENDING_MAX} requests already wait for an answer`, { retryable: true })

const writeFailed = (method: string) =>
  new MoleculeError('exit', `${method} could not be sent: the agent no longer reads its input`, {
    retryable: true,
  })
