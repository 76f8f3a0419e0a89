/**
 * The platform's API from outside, as our own commands use it: one token, one time limit, every failure a
 * MoleculeError that says what happened and whether trying again can help. Nothing is retried here: whoever calls
 * knows what may be repeated.
 */
import { MoleculeError } from '../errors.ts'
import type { Message, StreamResponse, Task } from '../protocol/a2a.ts'
import { failureFromAnswer, failureFromRpc, unreachable } from './failure.ts'

/** What the commands read of a workspace; the platform may send more. */
export interface WorkspaceSummary {
  readonly id: string
  readonly name: string
  readonly role: string
  readonly runtime: string
  readonly status: string
  readonly status_reason?: string
  readonly queue_depth?: number
}

export interface PlatformClientOptions {
  readonly url: string
  readonly token: string | undefined
  /** For one call; a blocking send waits as long as the platform lets it, so this must be longer than that. */
  readonly timeoutMs?: number
  readonly fetch?: typeof fetch
}

export interface PlatformClient {
  listWorkspaces(signal?: AbortSignal): Promise<WorkspaceSummary[]>
  getWorkspace(id: string, signal?: AbortSignal): Promise<WorkspaceSummary>
  /** Sending the same message again attaches to its task. `wait: false` answers as soon as it is admitted. */
  sendMessage(workspaceId: string, message: Message, options: SendMessageOptions): Promise<Task>
  getTask(workspaceId: string, taskId: string, signal?: AbortSignal): Promise<Task>
}

export interface SendMessageOptions {
  readonly wait: boolean
  readonly signal?: AbortSignal
}

/** Above the platform's default blocking time (120 s), so that the platform answers first. */
const CALL_TIMEOUT_MS = 150_000

export function createPlatformClient(options: PlatformClientOptions): PlatformClient {
  const call = createCall(options)
  const rpc = async <T>(workspaceId: string, request: RpcRequest, signal?: AbortSignal): Promise<T> => {
    const path = `/workspaces/${encodeURIComponent(workspaceId)}/a2a`
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, ...request })
    const answer = await call({ method: 'POST', path, body }, signal)
    const { result, error } = (answer ?? {}) as { result?: T; error?: unknown }
    if (error !== undefined || result === undefined) throw failureFromRpc(error)
    return result
  }
  return {
    async listWorkspaces(signal) {
      const answer = (await call({ method: 'GET', path: '/workspaces' }, signal)) as { workspaces: WorkspaceSummary[] }
      return answer.workspaces
    },
    async getWorkspace(id, signal) {
      return (await call({ method: 'GET', path: `/workspaces/${encodeURIComponent(id)}` }, signal)) as WorkspaceSummary
    },
    async sendMessage(workspaceId, message, { wait, signal }) {
      const params = { message, configuration: { returnImmediately: !wait } }
      const answer = await rpc<StreamResponse>(workspaceId, { method: 'SendMessage', params }, signal)
      if (answer.task === undefined) throw new MoleculeError('internal', 'the platform answered without a task')
      return answer.task
    },
    getTask: (workspaceId, id, signal) => rpc<Task>(workspaceId, { method: 'GetTask', params: { id } }, signal),
  }
}

interface RpcRequest {
  readonly method: string
  readonly params: object
}

interface HttpCall {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly body?: string
}

type Call = (request: HttpCall, signal?: AbortSignal) => Promise<unknown>

function createCall({ url, token, timeoutMs = CALL_TIMEOUT_MS, fetch: send = fetch }: PlatformClientOptions): Call {
  const base = url.replace(/\/+$/, '')
  const headers = {
    'Content-Type': 'application/json',
    'A2A-Version': '1.0',
    ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
  }
  return async ({ path, ...request }, signal) => {
    const limit = AbortSignal.timeout(timeoutMs)
    const ends = signal === undefined ? limit : AbortSignal.any([limit, signal])
    try {
      // A redirect would carry the token to whoever it names.
      const answer = await send(base + path, { ...request, headers, signal: ends, redirect: 'error' })
      const text = await answer.text()
      if (answer.ok) return JSON.parse(text)
      throw failureFromAnswer(answer, text)
    } catch (thrown) {
      if (thrown instanceof MoleculeError) throw thrown
      throw unreachable(base, thrown, limit.aborted)
    }
  }
}
