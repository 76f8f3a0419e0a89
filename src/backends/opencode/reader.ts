/**
 * What `opencode run --format json` prints: steps, tools when they have ended, text whole. A tool that was not allowed
 * ends the run in silence with exit code 0; then the reply says what was denied. An unknown session is told on stderr
 * in colours, everything else as an `error` event with the provider's status.
 */
import { MoleculeError } from '../../errors.ts'
import type { RunResult } from '../../process/processes.ts'
import { isJsonObject } from '../../protocol/json.ts'
import type { BackendEvent } from '../backend.ts'
import { type Answer, createAnswer, parseLine } from '../engine/answer.ts'
import { processFailure, readComplaint } from '../engine/cli-errors.ts'
import type { LineReader, Reading } from '../engine/line-agent.ts'
import { isSessionId } from '../engine/opening.ts'
import type { EndEvent } from '../engine/turns.ts'

type Fields = Readonly<Record<string, unknown>>

const DENIED = /rejected permission|rule which prevents|permission (denied|rejected)/i

export function createOpencodeReader(reading: Reading): LineReader {
  const answer = createAnswer()
  const used = { inputTokens: 0, outputTokens: 0, costUsd: 0 }
  let named = false
  let failed: EndEvent | undefined
  const read = (event: Fields): readonly BackendEvent[] => {
    const part = isJsonObject(event['part']) ? event['part'] : {}
    switch (event['type']) {
      case 'text':
        return answer.say(textOf(part['text']))
      case 'tool_use':
        return readTool(part, answer)
      case 'step_finish':
        return addUsage(part, used)
      case 'error':
        failed ??= { type: 'failed', error: modelError(event['error'], reading) }
        return ACTIVITY
      default:
        return ACTIVITY
    }
  }
  return {
    read(line) {
      const event = parseLine(line)
      if (event === undefined) return ACTIVITY
      const { sessionID } = event
      if (named || !isSessionId(sessionID)) return read(event)
      named = true
      return [{ type: 'session', token: reading.token(sessionID) }, ...read(event)]
    },
    conclude(result) {
      if (failed !== undefined) return failed
      const error = processFailure(plain(result), reading.facts)
      return error === undefined ? answer.finish(reading.backend).end : { type: 'failed', error }
    },
  }
}

type Used = { inputTokens: number; outputTokens: number; costUsd: number }

const ACTIVITY: readonly BackendEvent[] = [{ type: 'activity' }]

/** A tool is told of once it has ended, with its outcome. */
function readTool(part: Fields, answer: Answer): readonly BackendEvent[] {
  const name = textOf(part['tool']) || 'tool'
  const state = isJsonObject(part['state']) ? part['state'] : {}
  const isFine = state['status'] === 'completed'
  answer.pause()
  const events: BackendEvent[] = [
    { type: 'tool', name, state: 'started' },
    { type: 'tool', name, state: isFine ? 'finished' : 'failed' },
  ]
  if (isFine || !DENIED.test(textOf(state['error']))) return events
  // At once: after this the run says no more.
  return [...events, ...answer.say(`(Not allowed in this turn: ${name}.)`)]
}

/** Each step tells its own; the turn's is all of them so far. */
function addUsage({ tokens, cost }: Fields, used: Used): readonly BackendEvent[] {
  if (!isJsonObject(tokens)) return ACTIVITY
  const { input, output } = tokens
  if (typeof input !== 'number' || typeof output !== 'number') return ACTIVITY
  used.inputTokens += input
  used.outputTokens += output
  if (typeof cost === 'number') used.costUsd += cost
  return [{ type: 'usage', ...used }]
}

function modelError(error: unknown, { facts: { nowMs }, backend }: Reading): MoleculeError {
  const data = isJsonObject(error) && isJsonObject(error['data']) ? error['data'] : {}
  const { message, statusCode, responseHeaders, isRetryable } = data
  const wait = isJsonObject(responseHeaders) ? responseHeaders['retry-after'] : undefined
  const words = textOf(message) || `${backend} failed and said nothing`
  const text = typeof wait === 'string' ? `${words} (retry after ${wait} seconds)` : words
  const status = typeof statusCode === 'number' ? statusCode : undefined
  return (
    readComplaint({ text, status, nowMs }) ??
    new MoleculeError('provider_failed', text, { retryable: isRetryable !== false })
  )
}

/** Its stderr is coloured for a terminal. */
function plain(result: RunResult): RunResult {
  const text = new TextDecoder().decode(result.stderrTail).replaceAll(COLOUR, '')
  return { ...result, stderrTail: new TextEncoder().encode(text) }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: an escape sequence begins with one.
const COLOUR = /\u001b\[[0-9;]*m/g

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
