/**
 * The behaviour of the fake remote agent, as A2A 1.0 events: the first word of a message chooses it. `agent.ts` sends the
 * events with the published SDK of its version.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Message, Part, StreamResponse, TaskState } from '../../../src/protocol/a2a.ts'

export interface RemoteTurn {
  readonly taskId: string
  readonly contextId: string
  /** Whether the task existed before this message. */
  readonly known: boolean
  /** Replaces the first word of the message. */
  readonly behaviour?: string | undefined
}

export interface ReleaseControl {
  /** Ends every `slow` task that waits now. */
  release(): void
  readonly released: () => Promise<void>
}

const MEBIBYTE = 1024 * 1024
const CHUNKS = 8

export async function* runBehaviour(
  message: Message,
  turn: RemoteTurn,
  control: ReleaseControl,
): AsyncIterable<StreamResponse> {
  const prompt = message.parts.map((part) => part.text ?? '').join('')
  const [first = '', ...rest] = prompt.split(' ')
  const behaviour = turn.behaviour ?? first
  const text = rest.join(' ')
  const events = createEvents(turn)
  if (behaviour === 'bare') {
    yield events.message(message.parts.map(withoutWord), { mood: 'bare', more: { deep: [1, 2] } })
    return
  }
  yield events.task(turn.known ? 'TASK_STATE_WORKING' : 'TASK_STATE_SUBMITTED')
  if (turn.known) {
    yield events.artifact('answer', [{ text: `you said ${prompt}` }], { lastChunk: true })
    yield events.status('TASK_STATE_COMPLETED')
    return
  }
  yield events.status('TASK_STATE_WORKING', [{ text: 'looking into it' }], { step: 1 })
  switch (behaviour) {
    case 'ask':
      return yield events.status('TASK_STATE_INPUT_REQUIRED', [{ text: 'which colour?' }], { choices: ['red', 'blue'] })
    case 'login':
      return yield events.status('TASK_STATE_AUTH_REQUIRED', [{ text: 'log in at https://login.test' }])
    case 'reject':
      return yield events.status('TASK_STATE_REJECTED', [{ text: 'not my job' }], { code: 7 })
    case 'fail':
      return yield events.status('TASK_STATE_FAILED', [{ text: 'the disk is full' }])
    case 'break':
      yield events.artifact('answer', [{ text: 'half of it' }], { lastChunk: true })
      return yield events.status('TASK_STATE_FAILED', [{ text: 'no paper left' }])
    case 'silent':
      return yield events.status('TASK_STATE_COMPLETED')
    case 'endless':
      await new Promise(() => undefined)
      return
    case 'slow':
      yield events.artifact('answer', [{ text: 'one ' }])
      await control.released()
      yield events.artifact('answer', [{ text: 'two' }], { append: true, lastChunk: true })
      return yield events.status('TASK_STATE_COMPLETED')
    case 'flood':
      yield events.artifact('answer', [{ text: 'x'.repeat(11 * MEBIBYTE) }], { lastChunk: true })
      return yield events.status('TASK_STATE_COMPLETED')
    case 'rich':
      yield* rich(events)
      return yield events.status('TASK_STATE_COMPLETED', [{ text: 'all done' }], { cost: 3 })
    default:
      yield* inChunks(events, behaviour === 'stream' ? text : prompt)
      return yield events.status('TASK_STATE_COMPLETED')
  }
}

const withoutWord = (part: Part, index: number): Part =>
  index === 0 && part.text !== undefined ? { ...part, text: part.text.replace(/^bare ?/, '') } : part

/** Text, files and data in two artifacts with alternating chunks. */
async function* rich(events: RemoteEvents): AsyncIterable<StreamResponse> {
  yield events.artifact('report', [{ text: 'chapter one' }], { name: 'report', metadata: { pages: 2 } })
  yield events.artifact('files', [
    { raw: Buffer.from('a,b\n1,2\n').toString('base64'), filename: 'table.csv', mediaType: 'text/csv' },
  ])
  yield events.artifact('report', [{ text: ' and two', metadata: { bold: true } }], { append: true, lastChunk: true })
  yield events.artifact(
    'files',
    [
      { url: 'https://files.test/picture.png', mediaType: 'image/png', filename: 'picture.png' },
      { data: { rows: [{ a: 1 }], total: 1, none: null } },
    ],
    { append: true, lastChunk: true },
  )
}

async function* inChunks(events: RemoteEvents, text: string): AsyncIterable<StreamResponse> {
  const characters = [...text]
  const size = Math.max(1, Math.ceil(characters.length / CHUNKS))
  for (let at = 0; at === 0 || at < characters.length; at += size) {
    const chunk = { append: at > 0, lastChunk: at + size >= characters.length }
    yield events.artifact('answer', [{ text: characters.slice(at, at + size).join('') }], chunk)
    await pause(1)
  }
}

type RemoteEvents = ReturnType<typeof createEvents>

interface ArtifactOptions {
  readonly append?: boolean
  readonly lastChunk?: boolean
  readonly name?: string
  readonly metadata?: { readonly [key: string]: number }
}

function createEvents({ taskId, contextId }: RemoteTurn) {
  let messages = 0
  const agentMessage = (parts: readonly Part[], metadata?: Message['metadata']): Message => ({
    messageId: `${taskId}-${++messages}`,
    role: 'ROLE_AGENT',
    contextId,
    parts,
    ...(metadata && { metadata }),
  })
  const timestamp = () => new Date().toISOString()
  return {
    message: (parts: readonly Part[], metadata: Message['metadata']): StreamResponse => ({
      message: agentMessage(parts, metadata),
    }),
    task: (state: TaskState): StreamResponse => ({
      task: { id: taskId, contextId, status: { state, timestamp: timestamp() } },
    }),
    status: (state: TaskState, parts?: readonly Part[], metadata?: Message['metadata']): StreamResponse => {
      const message = parts && { message: { ...agentMessage(parts, metadata), taskId } }
      return { statusUpdate: { taskId, contextId, status: { state, ...message, timestamp: timestamp() } } }
    },
    artifact: (artifactId: string, parts: readonly Part[], options: ArtifactOptions = {}): StreamResponse => {
      const { append = false, lastChunk = false, ...named } = options
      return { artifactUpdate: { taskId, contextId, artifact: { artifactId, parts, ...named }, append, lastChunk } }
    },
  }
}
