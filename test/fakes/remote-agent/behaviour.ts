/**
 * What the remote agent of the tests does, in A2A 1.0 words: the first word of a message chooses. Both processes around
 * it (`agent.ts`) say the same through the published SDK of their version.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Message, Part, StreamResponse, TaskState } from '../../../src/protocol/a2a.ts'

export interface RemoteTurn {
  readonly taskId: string
  readonly contextId: string
  /** The task was there before this message. */
  readonly known: boolean
  /** What to do whatever the message says. */
  readonly word?: string | undefined
}

export interface ReleaseControl {
  /** Ends the wait of every `slow` that waits now. */
  release(): void
  readonly released: () => Promise<void>
}

const MEBIBYTE = 1024 * 1024
const CHUNKS = 8

export async function* runBehaviour(
  message: Message,
  names: RemoteTurn,
  control: ReleaseControl,
): AsyncIterable<StreamResponse> {
  const said = message.parts.map((part) => part.text ?? '').join('')
  const [first = '', ...rest] = said.split(' ')
  const word = names.word ?? first
  const text = rest.join(' ')
  const tell = createEvents(names)
  if (word === 'bare') {
    yield tell.message(message.parts.map(withoutWord), { mood: 'bare', more: { deep: [1, 2] } })
    return
  }
  yield tell.task(names.known ? 'TASK_STATE_WORKING' : 'TASK_STATE_SUBMITTED')
  if (names.known) {
    yield tell.artifact('answer', [{ text: `you said ${said}` }], { lastChunk: true })
    yield tell.status('TASK_STATE_COMPLETED')
    return
  }
  yield tell.status('TASK_STATE_WORKING', [{ text: 'looking into it' }], { step: 1 })
  switch (word) {
    case 'ask':
      return yield tell.status('TASK_STATE_INPUT_REQUIRED', [{ text: 'which colour?' }], { choices: ['red', 'blue'] })
    case 'login':
      return yield tell.status('TASK_STATE_AUTH_REQUIRED', [{ text: 'log in at https://login.test' }])
    case 'reject':
      return yield tell.status('TASK_STATE_REJECTED', [{ text: 'not my job' }], { code: 7 })
    case 'fail':
      return yield tell.status('TASK_STATE_FAILED', [{ text: 'the disk is full' }])
    case 'break':
      yield tell.artifact('answer', [{ text: 'half of it' }], { lastChunk: true })
      return yield tell.status('TASK_STATE_FAILED', [{ text: 'no paper left' }])
    case 'silent':
      return yield tell.status('TASK_STATE_COMPLETED')
    case 'endless':
      await new Promise(() => undefined)
      return
    case 'slow':
      yield tell.artifact('answer', [{ text: 'one ' }])
      await control.released()
      yield tell.artifact('answer', [{ text: 'two' }], { append: true, lastChunk: true })
      return yield tell.status('TASK_STATE_COMPLETED')
    case 'flood':
      yield tell.artifact('answer', [{ text: 'x'.repeat(11 * MEBIBYTE) }], { lastChunk: true })
      return yield tell.status('TASK_STATE_COMPLETED')
    case 'rich':
      yield* rich(tell)
      return yield tell.status('TASK_STATE_COMPLETED', [{ text: 'all done' }], { cost: 3 })
    default:
      yield* inChunks(tell, word === 'stream' ? text : said)
      return yield tell.status('TASK_STATE_COMPLETED')
  }
}

const withoutWord = (part: Part, index: number): Part =>
  index === 0 && part.text !== undefined ? { ...part, text: part.text.replace(/^bare ?/, '') } : part

/** Text, files and data, in two artifacts whose chunks come in turns. */
async function* rich(tell: RemoteEvents): AsyncIterable<StreamResponse> {
  yield tell.artifact('report', [{ text: 'chapter one' }], { name: 'report', metadata: { pages: 2 } })
  yield tell.artifact('files', [
    { raw: Buffer.from('a,b\n1,2\n').toString('base64'), filename: 'table.csv', mediaType: 'text/csv' },
  ])
  yield tell.artifact('report', [{ text: ' and two', metadata: { bold: true } }], { append: true, lastChunk: true })
  yield tell.artifact(
    'files',
    [
      { url: 'https://files.test/picture.png', mediaType: 'image/png', filename: 'picture.png' },
      { data: { rows: [{ a: 1 }], total: 1, none: null } },
    ],
    { append: true, lastChunk: true },
  )
}

async function* inChunks(tell: RemoteEvents, text: string): AsyncIterable<StreamResponse> {
  const characters = [...text]
  const size = Math.max(1, Math.ceil(characters.length / CHUNKS))
  for (let at = 0; at === 0 || at < characters.length; at += size) {
    const chunk = { append: at > 0, lastChunk: at + size >= characters.length }
    yield tell.artifact('answer', [{ text: characters.slice(at, at + size).join('') }], chunk)
    await pause(1)
  }
}

type RemoteEvents = ReturnType<typeof createEvents>

interface Chunk {
  readonly append?: boolean
  readonly lastChunk?: boolean
  readonly name?: string
  readonly metadata?: { readonly [key: string]: number }
}

function createEvents({ taskId, contextId }: RemoteTurn) {
  let messages = 0
  const words = (parts: readonly Part[], metadata?: Message['metadata']): Message => ({
    messageId: `${taskId}-${++messages}`,
    role: 'ROLE_AGENT',
    contextId,
    parts,
    ...(metadata && { metadata }),
  })
  const timestamp = () => new Date().toISOString()
  return {
    message: (parts: readonly Part[], metadata: Message['metadata']): StreamResponse => ({
      message: words(parts, metadata),
    }),
    task: (state: TaskState): StreamResponse => ({
      task: { id: taskId, contextId, status: { state, timestamp: timestamp() } },
    }),
    status: (state: TaskState, parts?: readonly Part[], metadata?: Message['metadata']): StreamResponse => {
      const message = parts && { message: { ...words(parts, metadata), taskId } }
      return { statusUpdate: { taskId, contextId, status: { state, ...message, timestamp: timestamp() } } }
    },
    artifact: (artifactId: string, parts: readonly Part[], chunk: Chunk = {}): StreamResponse => {
      const { append = false, lastChunk = false, ...named } = chunk
      return { artifactUpdate: { taskId, contextId, artifact: { artifactId, parts, ...named }, append, lastChunk } }
    },
  }
}
