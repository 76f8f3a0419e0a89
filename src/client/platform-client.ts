/**
 * The client of the platform's API that our own commands use: one token, one timeout, and every failure is a
 * MoleculeError whose `retryable` says whether a retry can help. It does not retry, because only the caller knows what
 * may be repeated.
 */
import { MoleculeError } from '../errors.ts'
import type { Message, StreamResponse, Task } from '../protocol/a2a.ts'
import { failureFromAnswer, failureFromRpc, platformUnreachable } from './platform-failure.ts'

/** The fields of a workspace that the commands read; the platform may send more. */
export interface WorkspaceSummary {
  readonly id: string
  readonly name: string
  readonly role: string
  readonly runtime: string
  readonly status: string
  readonly status_reason?: string
  readonly queue_depth?: number
  readonly running?: number
  readonly current_task?: string | null
  readonly status_text?: string
  readonly model?: string
  readonly parent_id?: string | null
}

/** One entry of a workspace's log. */
export interface ActivityView {
  readonly seq: number
  readonly at: string
  readonly type: string
  readonly task_id?: string
  readonly state?: string
  readonly name?: string
  readonly text?: string
  readonly by?: string
}

export interface ActivityPageView {
  readonly activity: readonly ActivityView[]
  /** The `since` of the next page. */
  readonly next: number
}

export interface ActivityPageQuery {
  readonly since: number
  readonly limit: number
  /** Gives the last entries instead of the first ones after `since`. */
  readonly newest: boolean
}

export interface StoryView {
  readonly message_id: string
  readonly task_id: string
  readonly workspace_id: string
  readonly context_id: string
  readonly sender: { readonly kind: string; readonly name: string; readonly door: string }
  readonly sender_message_id: string
  readonly text: string
  readonly task_state: string
  readonly steps: readonly { readonly at: string; readonly type: string; readonly text: string }[]
  readonly deliveries: readonly {
    readonly to: string
    readonly state: string
    readonly tries: number
    readonly error?: string
  }[]
}

/** A permission that an agent waits for. */
export interface PendingAskView {
  readonly id: string
  readonly workspace_id: string
  readonly task_id: string
  readonly tool: string
  readonly subject: string
  readonly asked_at: string
  readonly expires_in: number | string
}

export interface VersionView {
  readonly name: string
  readonly version: string
  readonly node: string
  readonly a2a: readonly string[]
}

export interface PlatformClientOptions {
  readonly url: string
  /** A function is called before each call that needs a token; it may refuse by throwing. */
  readonly token: string | undefined | (() => Promise<string | undefined> | string | undefined)
  /** For one call. It must be longer than the platform's limit for a blocking send. */
  readonly timeoutMs?: number
  readonly fetch?: typeof fetch
}

export interface PlatformClient {
  listWorkspaces(signal?: AbortSignal): Promise<WorkspaceSummary[]>
  getWorkspace(id: string, signal?: AbortSignal): Promise<WorkspaceSummary>
  /** Sending the same message again attaches to its task. `wait: false` returns as soon as it is admitted. */
  sendMessage(workspaceId: string, message: Message, options: SendMessageOptions): Promise<Task>
  getTask(workspaceId: string, taskId: string, signal?: AbortSignal): Promise<Task>
  /** Finds a task in any workspace. */
  findTask(taskId: string): Promise<Task>
  cancelTask(workspaceId: string, taskId: string): Promise<Task>
  /** The tasks of one conversation with history and artifacts, the last changed first. */
  listTasks(workspaceId: string, query: { readonly contextId: string; readonly pageSize: number }): Promise<Task[]>
  createWorkspace(input: Readonly<Record<string, unknown>>): Promise<WorkspaceSummary & Record<string, unknown>>
  /** Returns the ids of the deleted workspaces. */
  deleteWorkspace(id: string, options: { readonly confirm: string; readonly cascade: boolean }): Promise<string[]>
  runWorkspaceAction(id: string, action: WorkspaceAction): Promise<WorkspaceSummary>
  peersOf(id: string): Promise<WorkspaceSummary[]>
  /** Sets one line on the workspace's card; empty removes it. */
  setStatus(id: string, text: string): Promise<void>
  version(): Promise<VersionView>
  /** Whether the platform takes work, and if not, the reason. */
  ready(): Promise<{ readonly ready: boolean; readonly reason?: string }>
  activity(id: string, query: ActivityPageQuery): Promise<ActivityPageView>
  /** Follows the workspace's log after `since`, until the signal aborts. A broken stream throws. */
  events(id: string, since: number | undefined, signal: AbortSignal): AsyncIterable<EventsView>
  story(id: string): Promise<StoryView>
  listPendingAsks(): Promise<PendingAskView[]>
  answerAsk(id: string, decision: 'allow' | 'deny'): Promise<void>
}

export type WorkspaceAction = 'restart' | 'pause' | 'pause?now=true' | 'resume'

export interface EventsView {
  readonly seq: number
  readonly events: readonly ActivityView[]
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
      const pages = await allPages(async (next) => {
        const path = withAfter('/workspaces?limit=1000', next)
        return (await call({ method: 'GET', path }, signal)) as { workspaces: WorkspaceSummary[] } & Paged
      })
      return pages.flatMap(({ workspaces }) => workspaces)
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
    cancelTask: (workspaceId, id) => rpc<Task>(workspaceId, { method: 'CancelTask', params: { id } }),
    async listTasks(workspaceId, query) {
      const params = { ...query, includeArtifacts: true }
      return (await rpc<{ tasks: Task[] }>(workspaceId, { method: 'ListTasks', params })).tasks
    },
    ...simpleCalls(call),
    events: (id, since, signal) => followEvents(options, { id, since }, signal),
  }
}

type SimpleCalls = Omit<
  PlatformClient,
  'listWorkspaces' | 'getWorkspace' | 'sendMessage' | 'getTask' | 'cancelTask' | 'listTasks' | 'events'
>

/** The calls that are one request and its answer. */
function simpleCalls(call: Call): SimpleCalls {
  const at = (id: string, below = '') => `/workspaces/${encodeURIComponent(id)}${below}`
  const get = async <T>(path: string): Promise<T> => (await call({ method: 'GET', path })) as T
  return {
    findTask: (id) => get(`/tasks/${encodeURIComponent(id)}`),
    async createWorkspace(input) {
      const answer = await call({ method: 'POST', path: '/workspaces', body: JSON.stringify(input) })
      return answer as WorkspaceSummary & Record<string, unknown>
    },
    async deleteWorkspace(id, { confirm, cascade }) {
      const path = at(id, `?confirm=${encodeURIComponent(confirm)}&cascade=${cascade}`)
      return ((await call({ method: 'DELETE', path })) as { deleted: string[] }).deleted
    },
    runWorkspaceAction: async (id, action) =>
      (await call({ method: 'POST', path: at(id, `/${action}`) })) as WorkspaceSummary,
    peersOf: async (id) =>
      (await get<{ peers: WorkspaceSummary[] }>(`/registry/${encodeURIComponent(id)}/peers`)).peers,
    async setStatus(id, text) {
      await call({ method: 'PUT', path: at(id, '/status'), body: JSON.stringify({ text }) })
    },
    version: () => get('/version'),
    async ready() {
      try {
        await call({ method: 'GET', path: '/ready', isOpen: true })
        return { ready: true }
      } catch (thrown) {
        if (thrown instanceof MoleculeError && thrown.details['status'] === 503) {
          return { ready: false, reason: thrown.message }
        }
        throw thrown
      }
    },
    activity: (id, { since, limit, newest }) => get(at(id, `/activity?since=${since}&limit=${limit}&newest=${newest}`)),
    async story(id) {
      const parts = await allPages((next) =>
        get<StoryView & Paged>(withAfter(`/messages/${encodeURIComponent(id)}/story`, next)),
      )
      const { next: _next, ...story } = parts.at(-1) as StoryView & Paged
      return { ...story, steps: parts.flatMap(({ steps }) => steps) }
    },
    async listPendingAsks() {
      const pages = await allPages((next) => get<{ pending: PendingAskView[] } & Paged>(withAfter('/pending', next)))
      return pages.flatMap(({ pending }) => pending)
    },
    async answerAsk(id, decision) {
      const path = `/pending/${encodeURIComponent(id)}`
      await call({ method: 'POST', path, body: JSON.stringify({ decision }) })
    },
  }
}

interface Paged {
  readonly next?: string
}

/** More pages than any list has; a platform that never ends a list is left here. */
const PAGES_MAX = 1000

async function allPages<Page extends Paged>(read: (next: string | undefined) => Promise<Page>): Promise<Page[]> {
  const pages: Page[] = [await read(undefined)]
  for (let next = pages[0]?.next; next !== undefined && pages.length < PAGES_MAX; ) {
    const page = await read(next)
    pages.push(page)
    next = page.next
  }
  return pages
}

const withAfter = (path: string, after: string | undefined): string =>
  after === undefined ? path : `${path}${path.includes('?') ? '&' : '?'}after=${encodeURIComponent(after)}`

interface RpcRequest {
  readonly method: string
  readonly params: object
}

interface HttpCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly path: string
  readonly body?: string
  /** The route needs no token, so none is sent. */
  readonly isOpen?: boolean
}

type Call = (request: HttpCall, signal?: AbortSignal) => Promise<unknown>

const baseOf = (url: string): string => url.replace(/\/+$/, '')

const PLAIN_HEADERS = { 'Content-Type': 'application/json', 'A2A-Version': '1.0' }

async function headersWithToken({ token: given }: PlatformClientOptions): Promise<Record<string, string>> {
  const token = typeof given === 'function' ? await given() : given
  return token === undefined ? PLAIN_HEADERS : { ...PLAIN_HEADERS, Authorization: `Bearer ${token}` }
}

function createCall(options: PlatformClientOptions): Call {
  const { url, timeoutMs = CALL_TIMEOUT_MS, fetch: send = fetch } = options
  const base = baseOf(url)
  return async ({ path, isOpen = false, ...request }, signal) => {
    const headers = isOpen ? PLAIN_HEADERS : await headersWithToken(options)
    const limit = AbortSignal.timeout(timeoutMs)
    const ends = signal === undefined ? limit : AbortSignal.any([limit, signal])
    try {
      // Prevents a redirect from sending the token to another host.
      const answer = await send(base + path, { ...request, headers, signal: ends, redirect: 'error' })
      const text = await answer.text()
      if (answer.ok) return text === '' ? undefined : JSON.parse(text)
      throw failureFromAnswer(answer, text)
    } catch (thrown) {
      if (thrown instanceof MoleculeError) throw thrown
      throw platformUnreachable(base, thrown, limit.aborted)
    }
  }
}

/** The platform sends something at least every 15 s. A stream that is silent for this long is dead and is closed. */
const SILENCE_MS_MAX = 45_000

async function* followEvents(
  options: PlatformClientOptions,
  { id, since }: { id: string; since: number | undefined },
  signal: AbortSignal,
): AsyncIterable<EventsView> {
  const base = baseOf(options.url)
  const silence = new AbortController()
  const watch = setTimeout(() => silence.abort(), SILENCE_MS_MAX)
  const from = since === undefined ? {} : { 'Last-Event-ID': String(since) }
  const ends = AbortSignal.any([signal, silence.signal])
  try {
    const { fetch: send = fetch } = options
    const path = `/workspaces/${encodeURIComponent(id)}/events`
    const headers = { ...(await headersWithToken(options)), ...from }
    const answer = await send(base + path, { headers, signal: ends, redirect: 'error' })
    if (!answer.ok || answer.body === null) throw failureFromAnswer(answer, await answer.text())
    const { readSse } = await import('./read-sse.ts')
    for await (const data of readSse(withSilenceReset(answer.body, () => watch.refresh())))
      yield JSON.parse(data) as EventsView
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

async function* withSilenceReset(body: AsyncIterable<Uint8Array>, refresh: () => void): AsyncIterable<Buffer> {
  for await (const chunk of body) {
    refresh()
    yield Buffer.from(chunk)
  }
}
