/**
 * The `mock` backend: an agent without a model, for CI and first runs. It answers from a template, can be slow, stream,
 * fail, report usage and keep a session that counts its turns, so that everything around a backend can be tried.
 */
import type { Clock } from '../../clock.ts'
import { parseDuration } from '../../duration.ts'
import { MoleculeError } from '../../errors.ts'
import { joinText } from '../../protocol/request.ts'
import { sleep } from '../../wait.ts'
import type { Backend, BackendContext, BackendDefinition, BackendEvent, Turn } from '../backend.ts'
import { type BackendOptions, badOption, booleanOption } from '../options.ts'

const DELTAS_MAX = 16
/** A rough rule of thumb; what matters is that it is the same every time. */
const CHARACTERS_PER_TOKEN = 4
const FAIL_TIMES_ALWAYS = Number.POSITIVE_INFINITY

export const mock: BackendDefinition = {
  name: 'mock',
  summary: 'answer from a template without any agent, for CI and first runs',
  options: {
    reply: 'the answer; %s is the text of the message (echo: %s)',
    delay: 'how long it takes to answer, e.g. 500ms (none)',
    stream: 'true: the answer comes in several pieces (false)',
    fail: 'fail with this message instead of answering',
    fail_times: 'how many turns fail, the first ones, before it answers (all, where fail is set)',
    usage: 'true: report token counts (false)',
    session: 'true: keep a session that counts the turns of its conversation (false)',
  },
  startsNothing: true,
  reportsTools: true,
  isFree: true,
  create: (options, context) => createMock(readSettings(options), context),
}

interface Settings {
  readonly reply: string
  readonly delayMs: number
  readonly stream: boolean
  readonly fail: string
  readonly failTimes: number
  readonly usage: boolean
  readonly session: boolean
}

function createMock(settings: Settings, { clock }: BackendContext): Backend {
  const closing = new AbortController()
  let turns = 0
  return {
    name: mock.name,
    validate: () => Promise.resolve({ ok: true, note: 'answers by itself, no agent is asked' }),
    run(turn, signal) {
      turns += 1
      const fails = turns <= settings.failTimes
      return answer(turn, { ...settings, fails, clock, closing: closing.signal }, signal)
    },
    close() {
      closing.abort()
      return Promise.resolve()
    },
  }
}

function readSettings(options: BackendOptions): Settings {
  const delay = options.get('delay', '0s')
  const delayMs = parseDuration(delay)
  if (delayMs === undefined || delayMs < 0) throw badOption('delay', delay, 'a duration such as 500ms')
  const fail = options.get('fail', '')
  const failTimes = options.get('fail_times', '')
  if (!/^\d*$/.test(failTimes)) throw badOption('fail_times', failTimes, 'a number of turns')
  return {
    reply: options.get('reply', 'echo: %s'),
    delayMs,
    stream: booleanOption(options, 'stream', false),
    fail: fail || 'the mock was told to fail',
    failTimes: failTimes === '' ? defaultFailTimes(fail) : Number(failTimes),
    usage: booleanOption(options, 'usage', false),
    session: booleanOption(options, 'session', false),
  }
}

const defaultFailTimes = (fail: string): number => (fail === '' ? 0 : FAIL_TIMES_ALWAYS)

interface Answering extends Settings {
  readonly fails: boolean
  readonly clock: Clock
  readonly closing: AbortSignal
}

async function* answer(turn: Turn, settings: Answering, signal: AbortSignal): AsyncGenerator<BackendEvent> {
  const { clock, delayMs, closing } = settings
  yield { type: 'activity' }
  if (delayMs > 0) await sleep(clock, delayMs, AbortSignal.any([signal, closing]))
  if (signal.aborted || closing.aborted) return yield failed(new MoleculeError('canceled', 'the mock was canceled'))
  if (settings.fails) return yield failed(new MoleculeError('exit', settings.fail, { retryable: true }))
  const message = joinText(turn.request.parts)
  // By a function, because `$&` in a message is not ours to interpret.
  const reply = settings.reply.replaceAll('%s', () => message)
  if (settings.session) yield { type: 'session', token: nextToken(turn.sessionToken) }
  // Whole it comes with the end, and a piece that is all of it would say the same twice.
  for (const delta of settings.stream ? pieces(reply) : []) {
    if (delta !== '') yield { type: 'text', delta }
    if (signal.aborted || closing.aborted) return yield failed(new MoleculeError('canceled', 'the mock was canceled'))
  }
  if (settings.usage) yield { type: 'usage', inputTokens: tokens(message), outputTokens: tokens(reply) }
  yield { type: 'done', parts: [{ text: reply }], finality: 'completed' }
}

const failed = (error: MoleculeError): BackendEvent => ({ type: 'failed', error })

/** `mock-3` after the third turn; a token of somebody else's begins anew. */
function nextToken(token: string | undefined): string {
  const turns = /^mock-(\d+)$/.exec(token ?? '')?.[1] ?? '0'
  return `mock-${Number(turns) + 1}`
}

/** Cut between characters, never inside one. */
function pieces(reply: string): string[] {
  const characters = [...reply]
  const length = Math.ceil(characters.length / DELTAS_MAX)
  return Array.from({ length: DELTAS_MAX }, (_, n) => characters.slice(n * length, (n + 1) * length).join(''))
}

const tokens = (text: string): number => Math.ceil(text.length / CHARACTERS_PER_TOKEN)
