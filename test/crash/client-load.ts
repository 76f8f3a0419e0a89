/**
 * The load of the crash tests: conversations that talk to a platform which is being killed. Each client behaves as the
 * documentation asks: it keeps its messageId and sends again until it has an answer. It writes down what it was told,
 * and every answer is a function of its message, so that a lost, wrong or doubled one is seen.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Task } from '../../src/protocol/a2a.ts'
import type { Random } from './random.ts'

/** What a client knows of one message. */
export interface SentMessage {
  readonly messageId: string
  readonly workspaceId: string
  readonly text: string
  readonly expected: string
  /** Leaves a line for each run of its agent. */
  readonly counted: boolean
  sends: number
  /** All the tasks it was told of: there must be one. */
  readonly taskIds: Set<string>
  /** All the replies it was ever given: there must be one. */
  readonly replies: Set<string>
  /** The state of its task, once that is final. */
  end: string | undefined
}

/** Where the platform is; undefined while there is none. */
export interface PlatformAddress {
  url: string | undefined
  token: string
}

export interface ClientLoadOptions {
  readonly target: PlatformAddress
  readonly random: Random
  /** Where the exec commands write a line for each run, a file a message. */
  readonly runsDir: string
  /** Told of answers that no client should ever get. */
  readonly complain: (problem: string) => void
}

export interface ClientLoad {
  readonly sent: readonly SentMessage[]
  /** Begins no more messages, waits for the answers to those begun, at most so long; true when all have one. */
  finish(maxMs: number): Promise<boolean>
}

interface LoadWorkspace {
  readonly name: string
  readonly slots: number
  readonly conversations: number
  readonly runtime: 'mock' | 'exec'
  readonly config: (runsDir: string) => Record<string, string>
}

/** One line a run, and an answer that only this message can have. */
const answering = (runsDir: string, before = ''): string =>
  `read -r id n; ${before}echo "$MOLECULE_TURN" >> '${runsDir}'/"$id"; echo "answer $id $((n * 7 + 3))"`

/** Helpers that a tool might leave behind, with some messages: one in the group of the command, one that has left it. */
const LEAVING_CHILDREN = 'if [ $((n % 4)) = 0 ]; then sleep 86 >/dev/null 2>&1 & setsid sleep 86 >/dev/null 2>&1 & fi; '

/** A session that counts its turns shows whether each was kept once. */
const COUNTING = { session: 'true' }

/** Turns are short, so that hardly any message is cut off five times, after which it would be a dead letter. */
const LOAD_WORKSPACES: readonly LoadWorkspace[] = [
  {
    name: 'mock',
    slots: 1,
    conversations: 2,
    runtime: 'mock',
    config: () => ({ ...COUNTING, delay: '10ms', stream: 'true' }),
  },
  {
    name: 'mock, four slots',
    slots: 4,
    conversations: 5,
    runtime: 'mock',
    config: () => ({ ...COUNTING, delay: '20ms' }),
  },
  { name: 'exec', slots: 1, conversations: 2, runtime: 'exec', config: (dir) => ({ cmd: answering(dir) }) },
  {
    name: 'exec with children, three slots',
    slots: 3,
    conversations: 5,
    runtime: 'exec',
    config: (dir) => ({ cmd: answering(dir, LEAVING_CHILDREN) }),
  },
]

/** The wait before a client asks again. */
const RETRY_MS = 25
const ASK_AGAIN_ONE_IN = 8
/** A client gives up a call after this: a platform that is alive and silent is a defect that must show. */
const CALL_MS_MAX = 60_000

/** Makes the workspaces and starts to talk to them; the platform must stand until this has resolved. */
export async function startClientLoad(options: ClientLoadOptions): Promise<ClientLoad> {
  const sent: SentMessage[] = []
  const stop = { asked: false, now: false }
  const talks: Promise<void>[] = []
  for (const kind of LOAD_WORKSPACES) {
    const workspaceId = await makeWorkspace(options, kind)
    for (let n = 1; n <= kind.conversations; n++) {
      const conversation = { workspaceId, contextId: `context-${n}`, kind }
      talks.push(runConversation(conversation, { ...options, sent, stop }))
    }
  }
  return {
    sent,
    async finish(maxMs) {
      stop.asked = true
      const all = Promise.all(talks).then(() => true)
      const timer = setTimeout(() => {
        stop.now = true
      }, maxMs)
      await all
      clearTimeout(timer)
      return !stop.now
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
  if (response.status !== 201) throw new Error(`no workspace: ${JSON.stringify(answer)}`)
  return answer.id
}

interface ClientConversation {
  readonly workspaceId: string
  readonly contextId: string
  readonly kind: LoadWorkspace
}

interface ClientContext extends ClientLoadOptions {
  readonly sent: SentMessage[]
  readonly stop: { asked: boolean; now: boolean }
}

/** Message after message, each way of sending in turn as chance has it. */
async function runConversation(conversation: ClientConversation, talking: ClientContext): Promise<void> {
  const { random, stop } = talking
  while (!stop.asked) {
    const way = random.pick(['wait', 'wait', 'poll', 'burst'] as const)
    const count = way === 'burst' ? 2 + random.whole(2) : 1
    const messages = Array.from({ length: count }, () => createMessage(conversation, talking))
    await Promise.all(messages.map((message) => deliver(message, conversation, { ...talking, wait: way === 'wait' })))
  }
}

let written = 0

function createMessage(
  { workspaceId, contextId, kind }: ClientConversation,
  { sent, random }: ClientContext,
): SentMessage {
  written += 1
  const messageId = `m${written}-${contextId}`
  const n = random.whole(100_000)
  const text = `${messageId} ${n}`
  const counted = kind.runtime === 'exec'
  const expected = counted ? `answer ${messageId} ${n * 7 + 3}\n` : `echo: ${text}`
  const facts = { messageId, workspaceId, text, expected, counted, sends: 0, end: undefined }
  const message: SentMessage = { ...facts, taskIds: new Set(), replies: new Set() }
  sent.push(message)
  return message
}

/** Sends until there is an answer; between two lives of the platform that may take many tries. */
async function deliver(
  message: SentMessage,
  { contextId }: ClientConversation,
  how: ClientContext & { wait: boolean },
): Promise<void> {
  const { messageId, text } = message
  const words = { messageId, contextId, role: 'ROLE_USER', parts: [{ text }] }
  const send = { message: words, configuration: { returnImmediately: !how.wait } }
  while (message.end === undefined && !how.stop.now) {
    const known = how.wait ? undefined : [...message.taskIds][0]
    const call = known === undefined ? rpc('SendMessage', send) : rpc('GetTask', { id: known })
    if (known === undefined) message.sends += 1
    const answer = await ask(message, call, how)
    if (answer !== undefined) recordAnswer(message, answer)
    if (message.end === undefined) await delay(RETRY_MS)
  }
  // Some ask once more for what they have been told: it must be the same.
  if (how.random.whole(ASK_AGAIN_ONE_IN) > 0 || how.stop.now) return
  const again = await ask(message, rpc('SendMessage', send), how)
  if (again !== undefined) recordAnswer(message, again)
}

const rpc = (method: string, params: unknown) => ({ jsonrpc: '2.0', id: 1, method, params })

/** The task, or undefined when the platform went away, is not there, or asks to come again. */
async function ask(
  { workspaceId, messageId }: SentMessage,
  call: object,
  how: ClientContext,
): Promise<Task | undefined> {
  const { target, complain } = how
  if (target.url === undefined) return undefined
  let response: Response
  let text: string
  try {
    response = await post(target, `/workspaces/${workspaceId}/a2a`, call)
    text = await response.text()
  } catch (error) {
    if ((error as Error).name === 'TimeoutError') complain(`no answer within ${CALL_MS_MAX} ms to ${messageId}`)
    return undefined
  }
  if (response.status === 503 || response.status === 429) return undefined
  const { result } = JSON.parse(text) as { result?: Task & { task?: Task } }
  if (response.status !== 200 || result === undefined) {
    complain(`${messageId} was answered with ${response.status} ${text.slice(0, 300)}`)
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
