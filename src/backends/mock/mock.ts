/**
 * The `mock` backend: an agent without a model, for CI and first runs. It answers from a template. It can be slow,
 * stream, fail, report usage and keep a session that counts its turns. It starts no process and needs no buffer, so it is
 * a plain generator and does not use the turn engine.
 */
import type { Clock } from '../../clock.ts'
import { parseDuration } from '../../duration.ts'
import { MoleculeError } from '../../errors.ts'
import { joinText } from '../../protocol/request.ts'
import { sleep } from '../../wait.ts'
import type { Backend, BackendContext, BackendDefinition, BackendEvent, Turn } from '../backend.ts'
import { turnCanceled } from '../engine/turn-engine.ts'
import { type BackendOptions, badOption, booleanOption } from '../options.ts'

const DELTAS_MAX = 16
/** A rough estimate; it only has to be the same every time. */
const CHARACTERS_PER_TOKEN = 4
const FAIL_TIMES_ALWAYS = Number.POSITIVE_INFINITY

export const mock: BackendDefinition = {
  name: 'mock',
  summary: 'answer from a template without any agent, for CI and first runs',
  options: {
    reply: 'the answer; %s is the text of the message (echo: %s)',
    delay: 'how long the answer takes, e.g. 500ms (none)',
    stream: 'true: send the answer in several pieces, over the time of the delay (false)',
    fail: 'fail with this message instead of answering',
    fail_times: 'how many turns fail before the first answer (all, if fail is set)',
    usage: 'true: report token counts (false)',
    cost: 'what a turn costs, in US dollars, e.g. 0.004 (not reported)',
    session: 'true: keep a session that counts the turns of its conversation (false)',
  },
  startsNothing: true,
  reportsTools: true,
  isFree: true,
  ignoresPrompt: true,
  create: (options, context) => createMock(readSettings(options), context),
}

interface Settings {
  readonly reply: string
  readonly delayMs: number
  readonly stream: boolean
  readonly fail: string
  readonly failTimes: number
  readonly usage: boolean
  readonly costUsd: number | undefined
  readonly session: boolean
}

function createMock(settings: Settings, { clock }: BackendContext): Backend {
  const closing = new AbortController()
  let turns = 0
  return {
    name: mock.name,
    validate: () => Promise.resolve({ ok: true, note: 'answers by itself, without an agent' }),
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
  const cost = options.get('cost', '')
  if (!/^(\d+(\.\d+)?)?$/.test(cost)) throw badOption('cost', cost, 'a number of US dollars')
  return {
    reply: options.get('reply', 'echo: %s'),
    delayMs,
    stream: booleanOption(options, 'stream', false),
    fail: fail || 'the mock is configured to fail',
    failTimes: failTimes === '' ? defaultFailTimes(fail) : Number(failTimes),
    usage: booleanOption(options, 'usage', false),
    costUsd: cost === '' ? undefined : Number(cost),
    session: booleanOption(options, 'session', false),
  }
}

const defaultFailTimes = (fail: string): number => (fail === '' ? 0 : FAIL_TIMES_ALWAYS)

async function* answer(
  turn: Turn,
  settings: Settings & { fails: boolean; clock: Clock; closing: AbortSignal },
  signal: AbortSignal,
): AsyncGenerator<BackendEvent> {
  const { clock, delayMs, closing } = settings
  yield { type: 'activity' }
  const stops = AbortSignal.any([signal, closing])
  if (delayMs > 0 && !settings.stream) await sleep(clock, delayMs, stops)
  if (signal.aborted || closing.aborted) return yield failed(turnCanceled())
  if (settings.fails) return yield failed(new MoleculeError('exit', settings.fail, { retryable: true }))
  const message = joinText(turn.request.parts)
  // With a function: in a replacement string, `$&` of the message would be interpreted.
  const reply = settings.reply.replaceAll('%s', () => message)
  if (settings.session) yield { type: 'session', token: nextToken(turn.sessionToken) }
  // Without `stream` the reply comes only with `done`: one delta with all of it would send it twice.
  for (const delta of settings.stream ? pieces(reply) : []) {
    if (delayMs > 0) await sleep(clock, delayMs / DELTAS_MAX, stops)
    if (delta !== '') yield { type: 'text', delta }
    if (signal.aborted || closing.aborted) return yield failed(turnCanceled())
  }
  const counts = settings.usage ? { inputTokens: tokens(message), outputTokens: tokens(reply) } : {}
  const cost = settings.costUsd === undefined ? {} : { costUsd: settings.costUsd }
  if (settings.usage || settings.costUsd !== undefined) yield { type: 'usage', ...counts, ...cost }
  yield { type: 'done', parts: [{ text: reply }], finality: 'completed' }
}

const failed = (error: MoleculeError): BackendEvent => ({ type: 'failed', error })

/** `mock-3` after the third turn. A token of another backend starts a new session. */
function nextToken(token: string | undefined): string {
  const turns = /^mock-(\d+)$/.exec(token ?? '')?.[1] ?? '0'
  return `mock-${Number(turns) + 1}`
}

/** Cuts only between characters. */
function pieces(reply: string): string[] {
  const characters = [...reply]
  const length = Math.ceil(characters.length / DELTAS_MAX)
  return Array.from({ length: DELTAS_MAX }, (_, n) => characters.slice(n * length, (n + 1) * length).join(''))
}

const tokens = (text: string): number => Math.ceil(text.length / CHARACTERS_PER_TOKEN)
