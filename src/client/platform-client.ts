/**
 * The client of the platform that our own commands and the web page use: the endpoints of its API by their names, A2A, and
 * the log of a workspace as a stream. One token or the page's cookie, one timeout, and every failure is a MoleculeError whose
 * `retryable` says whether a retry can help. It does not retry, because only the caller knows what may be repeated.
 */
import { MoleculeError } from '../errors.ts'
import type { Message, StreamResponse, Task, TaskState } from '../protocol/a2a.ts'
import type { TraceContext } from '../protocol/trace-context.ts'
import { trimEndOf } from '../trim-end.ts'
import { type ApiClient, type ApiClientOptions, createApiClient, headersWithToken, sendCall } from './api-client.ts'
import { failureFromAnswer, failureFromRpc, platformUnreachable } from './platform-failure.ts'
import type { ActivityView } from './views.ts'

export type PlatformClientOptions = ApiClientOptions

export interface PlatformClient extends ApiClient {
  /** Sending the same message again attaches to its task. `wait: false` returns as soon as it is admitted. */
  sendMessage(workspaceId: string, message: Message, options: SendMessageOptions): Promise<Task>
  /** `historyLength: 0` leaves out the messages with their files. */
  getTask(workspaceId: string, taskId: string, view?: { readonly historyLength?: number }): Promise<Task>
  cancelTask(workspaceId: string, taskId: string): Promise<Task>
  /** The last changed first, at most `limit`. */
  listTasks(workspaceId: string, query: ListTasksQuery): Promise<Task[]>
  /** Follows the workspace's log after `since`, until the signal aborts. A broken stream throws. */
  events(id: string, since: number | undefined, signal: AbortSignal): AsyncIterable<EventsView>
}

export interface EventsView {
  readonly seq: number
  readonly events: readonly ActivityView[]
}

export interface ListTasksQuery {
  readonly limit: number
  /** Stops after the first page, which has at most 1 MiB, also when it has fewer tasks. */
  readonly onePage?: boolean
  readonly contextId?: string
  readonly status?: TaskState
  readonly historyLength?: number
  readonly includeArtifacts?: boolean
}

export interface SendMessageOptions {
  readonly wait: boolean
  /** The trace that the message continues. */
  readonly trace?: TraceContext | undefined
  readonly signal?: AbortSignal
}

export function createPlatformClient(options: PlatformClientOptions): PlatformClient {
  const rpc = async <T>(
    workspaceId: string,
    { trace, ...request }: RpcRequest & { readonly trace?: TraceContext | undefined },
    signal?: AbortSignal,
  ): Promise<T> => {
    const path = `/workspaces/${encodeURIComponent(workspaceId)}/a2a`
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, ...request })
    const { answer } = await sendCall(options, { method: 'POST', path, body, headers: { ...trace } }, signal)
    const { result, error } = (answer ?? {}) as { result?: T; error?: unknown }
    if (error !== undefined || result === undefined) throw failureFromRpc(error)
    return result
  }
  return {
    ...createApiClient(options),
    async sendMessage(workspaceId, message, { wait, trace, signal }) {
      const params = { message, configuration: { returnImmediately: !wait } }
      const answer = await rpc<StreamResponse>(workspaceId, { method: 'SendMessage', params, trace }, signal)
      if (answer.task === undefined) throw new MoleculeError('internal', 'the platform answered without a task')
      return answer.task
    },
    getTask: (workspaceId, id, view = {}) => rpc<Task>(workspaceId, { method: 'GetTask', params: { id, ...view } }),
    cancelTask: (workspaceId, id) => rpc<Task>(workspaceId, { method: 'CancelTask', params: { id } }),
    async listTasks(workspaceId, { limit, onePage = false, ...query }) {
      const tasks: Task[] = []
      // A page also ends at a number of bytes.
      for (let pageToken = ''; tasks.length < limit; ) {
        const params = { ...query, pageSize: limit - tasks.length, ...(pageToken !== '' && { pageToken }) }
        const page = await rpc<TaskPageView>(workspaceId, { method: 'ListTasks', params })
        tasks.push(...page.tasks)
        pageToken = page.nextPageToken
        if (pageToken === '' || onePage) break
      }
      return tasks
    },
    events: (id, since, signal) => followEvents(options, { id, since }, signal),
  }
}

interface TaskPageView {
  readonly tasks: readonly Task[]
  readonly nextPageToken: string
}

interface RpcRequest {
  readonly method: string
  readonly params: object
}

const baseOf = (url: string): string => trimEndOf(url, '/')

/** The platform sends something at least every 15 s. A stream that is silent for this long is dead and is closed. */
const SILENCE_MS_MAX = 45_000

async function* followEvents(
  options: PlatformClientOptions,
  { id, since }: { id: string; since: number | undefined },
  signal: AbortSignal,
): AsyncIterable<EventsView> {
  const base = baseOf(options.url)
  const silence = new AbortController()
  let watch: ReturnType<typeof setTimeout> | undefined
  const restartWatch = () => {
    clearTimeout(watch)
    watch = setTimeout(() => silence.abort(), SILENCE_MS_MAX)
  }
  restartWatch()
  const from: Record<string, string> = since === undefined ? {} : { 'Last-Event-ID': String(since) }
  const ends = AbortSignal.any([signal, silence.signal])
  try {
    const { fetch: send = fetch } = options
    const path = `/workspaces/${encodeURIComponent(id)}/events`
    const headers = { ...(await headersWithToken(options)), ...from }
    const answer = await send(base + path, { headers, signal: ends, redirect: 'error' })
    if (!answer.ok || answer.body === null) throw failureFromAnswer(answer, await answer.text())
    const { readSse } = await import('./read-sse.ts')
    for await (const data of readSse(withSilenceReset(answer.body, restartWatch))) yield JSON.parse(data) as EventsView
  } catch (thrown) {
    if (signal.aborted) return
    if (thrown instanceof MoleculeError) throw thrown
    throw platformUnreachable(base, thrown, silence.signal.aborted)
  } finally {
    clearTimeout(watch)
    silence.abort()
  }
  if (!signal.aborted) throw platformUnreachable(base, new Error('the stream ended'), false)
}

async function* withSilenceReset(body: AsyncIterable<Uint8Array>, restart: () => void): AsyncIterable<Uint8Array> {
  for await (const chunk of body) {
    restart()
    yield chunk
  }
}
