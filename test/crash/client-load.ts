/**
 * The load of the crash tests: conversations with a platform that is being killed. Each client does what the
 * documentation says: it keeps its messageId and sends again until it has an answer. It records what it receives. Every
 * reply is a function of its message, so that a lost, wrong or repeated one is found.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Task } from '../../src/protocol/a2a.ts'
import type { Random } from './random.ts'

/** What a client knows about one message. */
export interface SentMessage {
  readonly messageId: string
  readonly workspaceId: string
  readonly text: string
  readonly expected: string
  /** True when its agent writes a line for each run. */
  readonly counted: boolean
  sends: number
  /** The tasks of all its answers: there must be one. */
  readonly taskIds: Set<string>
  /** The replies of all its answers: there must be one. */
  readonly replies: Set<string>
  /** The final state of its task. */
  end: string | undefined
}

/** `url` is undefined while no platform runs. */
export interface PlatformAddress {
  url: string | undefined
  token: string
}

export interface ClientLoadOptions {
  readonly target: PlatformAddress
  readonly random: Random
  /** The exec commands write a line for each run here, one file per message. */
  readonly runsDir: string
  /** Called for an answer that no client should get. */
  readonly reportProblem: (problem: string) => void
}

export interface ClientLoad {
  readonly sent: readonly SentMessage[]
  /** Sends no new messages and waits for the open answers, at most `maxMs`; true when all have arrived. */
  finish(maxMs: number): Promise<boolean>
}

interface LoadWorkspace {
  readonly name: string
  readonly slots: number
  readonly conversations: number
  readonly runtime: 'mock' | 'exec'
  readonly config: (runsDir: string) => Record<string, string>
}

/** Writes one line per run and prints an answer that only this message can have. */
const answerCommand = (runsDir: string, before = ''): string =>
  `read -r id n; ${before}echo "$MOLECULE_TURN" >> '${runsDir}'/"$id"; echo "answer $id $((n * 7 + 3))"`

/** Like a tool, leaves child processes behind for some messages: one in the process group and one outside it. */
const LEAVES_CHILDREN = 'if [ $((n % 4)) = 0 ]; then sleep 86 >/dev/null 2>&1 & setsid sleep 86 >/dev/null 2>&1 & fi; '

/** A session that counts its turns shows whether each was stored once. */
const COUNTS_TURNS = { session: 'true' }

/** Turns are short, so that hardly any message loses its worker five times and becomes a dead letter. */
const LOAD_WORKSPACES: readonly LoadWorkspace[] = [
  {
    name: 'mock',
    slots: 1,
    conversations: 2,
    runtime: 'mock',
    config: () => ({ ...COUNTS_TURNS, delay: '10ms', stream: 'true' }),
  },
  {
    name: 'mock, four slots',
    slots: 4,
    conversations: 5,
    runtime: 'mock',
    config: () => ({ ...COUNTS_TURNS, delay: '20ms' }),
  },
  { name: 'exec', slots: 1, conversations: 2, runtime: 'exec', config: (dir) => ({ cmd: answerCommand(dir) }) },
  {
    name: 'exec with children, three slots',
    slots: 3,
    conversations: 5,
    runtime: 'exec',
    config: (dir) => ({ cmd: answerCommand(dir, LEAVES_CHILDREN) }),
  },
]

/** The time before a client sends again. */
const RETRY_MS = 25
/** One in this many clients sends again after it has its answer. */
const SEND_AGAIN_ONE_IN = 8
/** A call without an answer for this long is reported: a platform that runs and does not answer is a bug. */
const CALL_MS_MAX = 60_000

/** Creates the workspaces and starts the conversations. The platform must not be killed before this resolves. */
export async function startClientLoad(options: ClientLoadOptions): Promise<ClientLoad> {
  const sent: SentMessage[] = []
  const stop = { requested: false, timedOut: false }
  const conversations: Promise<void>[] = []
  for (const kind of LOAD_WORKSPACES) {
    const workspaceId = await makeWorkspace(options, kind)
    for (let n = 1; n <= kind.conversations; n++) {
      const conversation = { workspaceId, contextId: `context-${n}`, kind }
      conversations.push(runConversation(conversation, { ...options, sent, stop }))
    }
  }
  return {
    sent,
    async finish(maxMs) {
      stop.requested = true
      const all = Promise.all(conversations).then(() => true)
      const timer = setTimeout(() => {
        stop.timedOut = true
      }, maxMs)
      await all
      clearTimeout(timer)
      return !stop.timedOut
    },
  }
}

async function makeWorkspace({ target, runsDir }: ClientLoadOptions, kind: LoadWorkspace): Promise<string> {
  const body = {
    name: kind.name,
    runtime: kind.runtime,
    max_concurrent_tasks: kind.slots,
    runtime_config: kind.config(runsDir),
  }
  const response = await post(target, '/workspaces', body)
  const answer = (await response.json()) as { id: string }
  if (response.status !== 201) throw new Error(`the workspace was not created: ${JSON.stringify(answer)}`)
  return answer.id
}

interface ClientConversation {
  readonly workspaceId: string
  readonly contextId: string
  readonly kind: LoadWorkspace
}

interface ClientContext extends ClientLoadOptions {
  readonly sent: SentMessage[]
  readonly stop: { requested: boolean; timedOut: boolean }
}

/** Sends message after message, each in a random way. */
async function runConversation(conversation: ClientConversation, context: ClientContext): Promise<void> {
  const { random, stop } = context
  while (!stop.requested) {
    const way = random.pick(['wait', 'wait', 'poll', 'burst'] as const)
    const count = way === 'burst' ? 2 + random.whole(2) : 1
    const messages = Array.from({ length: count }, () => createMessage(conversation, context))
    await Promise.all(messages.map((message) => deliver(message, conversation, { ...context, wait: way === 'wait' })))
  }
}

let messageCount = 0

function createMessage(
  { workspaceId, contextId, kind }: ClientConversation,
  { sent, random }: ClientContext,
): SentMessage {
  messageCount += 1
  const messageId = `m${messageCount}-${contextId}`
  const n = random.whole(100_000)
  const text = `${messageId} ${n}`
  const counted = kind.runtime === 'exec'
  const expected = counted ? `answer ${messageId} ${n * 7 + 3}\n` : `echo: ${text}`
  const facts = { messageId, workspaceId, text, expected, counted, sends: 0, end: undefined }
  const message: SentMessage = { ...facts, taskIds: new Set(), replies: new Set() }
  sent.push(message)
  return message
}

/** Sends until there is an answer. While no platform runs, that takes many tries. */
async function deliver(
  message: SentMessage,
  { contextId }: ClientConversation,
  context: ClientContext & { wait: boolean },
): Promise<void> {
  const { messageId, text } = message
  const content = { messageId, contextId, role: 'ROLE_USER', parts: [{ text }] }
  const send = { message: content, configuration: { returnImmediately: !context.wait } }
  while (message.end === undefined && !context.stop.timedOut) {
    const taskId = context.wait ? undefined : [...message.taskIds][0]
    const call = taskId === undefined ? rpc('SendMessage', send) : rpc('GetTask', { id: taskId })
    if (taskId === undefined) message.sends += 1
    const answer = await callPlatform(message, call, context)
    if (answer !== undefined) recordAnswer(message, answer)
    if (message.end === undefined) await delay(RETRY_MS)
  }
  // Some clients send again after the answer: the second answer must be the same.
  if (context.random.whole(SEND_AGAIN_ONE_IN) > 0 || context.stop.timedOut) return
  const again = await callPlatform(message, rpc('SendMessage', send), context)
  if (again !== undefined) recordAnswer(message, again)
}

const rpc = (method: string, params: unknown) => ({ jsonrpc: '2.0', id: 1, method, params })

/** The task; undefined when the platform was killed, is not running, or answers 429 or 503. */
async function callPlatform(
  { workspaceId, messageId }: SentMessage,
  call: object,
  context: ClientContext,
): Promise<Task | undefined> {
  const { target, reportProblem } = context
  if (target.url === undefined) return undefined
  let response: Response
  let text: string
  try {
    response = await post(target, `/workspaces/${workspaceId}/a2a`, call)
    text = await response.text()
  } catch (error) {
    if ((error as Error).name === 'TimeoutError') reportProblem(`no answer within ${CALL_MS_MAX} ms to ${messageId}`)
    return undefined
  }
  if (response.status === 503 || response.status === 429) return undefined
  const { result } = JSON.parse(text) as { result?: Task & { task?: Task } }
  if (response.status !== 200 || result === undefined) {
    reportProblem(`${messageId} was answered with ${response.status} ${text.slice(0, 300)}`)
    return undefined
  }
  return result.task ?? result
}

function post({ url, token }: PlatformAddress, path: string, body: object): Promise<Response> {
  return fetch(`${url}${path}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(CALL_MS_MAX),
  })
}

const FINAL = /^TASK_STATE_(COMPLETED|FAILED|CANCELED|REJECTED)$/

function recordAnswer(message: SentMessage, task: Task): void {
  message.taskIds.add(task.id)
  const reply = task.artifacts?.at(-1)?.parts[0]?.text
  if (reply !== undefined) message.replies.add(reply)
  if (FINAL.test(task.status.state)) message.end = task.status.state
}
