/**
 * The output of a bridge: one line per event and, on a terminal, a last line that is updated: waiting, or running and for
 * how long. Text of a sender is shown without control characters.
 */

import type { Clock } from '../../clock.ts'
import { formatDuration, formatWait } from '../../duration.ts'
import { type Lease, type LeaseKey, leaseId, type Outcome } from '../../inbox/worker.ts'
import { withoutControls } from '../../printable.ts'
import { toRequestPart } from '../../protocol/part.ts'
import { joinText } from '../../protocol/request.ts'
import { shorten } from '../../truncate.ts'

const TEXT_CHARACTERS_MAX = 60
const REFRESH_MS = 1000
const WIDTH_DEFAULT = 80

export interface DisplayOptions {
  readonly write: (text: string) => void
  /** The output is a terminal, whose last line can be overwritten. */
  readonly live: boolean
  readonly width: () => number | undefined
  readonly clock: Clock
}

export interface Display {
  /** Prints one line, with the time first. */
  print(text: string): void
  begun(lease: Lease): void
  ended(key: LeaseKey, outcome: Outcome, answer: 'settled' | 'stale'): void
  /** Another worker has taken over the message. */
  lost(key: LeaseKey): void
  /** Why the platform cannot be reached; undefined when it can again. */
  connectionChanged(reason: string | undefined, backoffMs: number): void
  /** What each running turn works on: the beginning of its message, in quotes, and its sender. */
  runningTurns(): readonly string[]
  /** The bridge now waits for messages, and the last line says so. */
  ready(): void
  close(): void
}

interface ShownTurn {
  readonly text: string
  readonly startMs: number
}

export function createDisplay({ write, live, width, clock }: DisplayOptions): Display {
  const running = new Map<string, ShownTurn>()
  let outage: string | undefined
  let ready = false
  let drawn = ''
  let cancel: (() => void) | undefined
  const sinceMs = (startMs: number) => clock.monotonicMs() - startMs
  const status = () => {
    if (outage !== undefined) return `waiting for the platform: ${outage}`
    const [first] = running.values()
    if (first === undefined) return ready ? 'waiting for messages (Ctrl-C stops)' : ''
    const more = running.size > 1 ? ` and ${running.size - 1} more` : ''
    return `running ${formatSeconds(sinceMs(first.startMs))}: ${first.text}${more}`
  }
  const draw = () => {
    const line = withoutControls(status()).slice(0, (width() || WIDTH_DEFAULT) - 1)
    if (!live || line === drawn) return
    drawn = line
    write(`\r\u001b[K${line}`)
  }
  const tick = () => {
    draw()
    cancel = clock.after(REFRESH_MS, tick)
  }
  const print = (text: string) => {
    write(`${live ? '\r\u001b[K' : ''}${formatTime(clock.nowMs())} ${withoutControls(text)}\n`)
    drawn = ''
    draw()
  }
  const take = (key: LeaseKey): ShownTurn => {
    const shown = running.get(leaseId(key)) ?? { text: `message ${key.messageId}`, startMs: clock.monotonicMs() }
    running.delete(leaseId(key))
    return shown
  }
  if (live) tick()
  return {
    print,
    begun(lease) {
      const text = `${quotedText(lease)} from ${toPlainLine(lease.sender.name)}`
      running.set(leaseId(lease), { text, startMs: clock.monotonicMs() })
      print(`running ${text}`)
    },
    ended(key, outcome, answer) {
      const { text, startMs } = take(key)
      print(`${outcomeText(outcome, answer)} ${text} (${formatSeconds(sinceMs(startMs))})`)
    },
    lost(key) {
      if (running.has(leaseId(key))) print(`taken over by another bridge, stopped here: ${take(key).text}`)
    },
    connectionChanged(reason, backoffMs) {
      const before = outage
      outage = reason
      if (reason !== undefined && reason !== before) print(`${reason}; retrying in ${formatDuration(backoffMs)}`)
      if (reason === undefined) print('connected again')
    },
    runningTurns: () => [...running.values()].map(({ text }) => text),
    ready() {
      ready = true
      if (live) draw()
      else print('waiting for messages')
    },
    close() {
      cancel?.()
      if (live) write('\r\u001b[K')
    },
  }
}

function outcomeText(outcome: Outcome, answer: 'settled' | 'stale'): string {
  if (answer === 'stale') return 'another bridge has answered; kept as a late result:'
  if (outcome.type === 'done') return outcome.finality === 'completed' ? 'answered' : 'asked back about'
  if (outcome.type === 'stopped') return 'cancelled'
  if (outcome.type === 'released') return outcome.parked === undefined ? 'given back' : 'put back, waits:'
  const { message, sentence = message } = outcome.failure
  if (outcome.type === 'retry' && outcome.parked === true)
    return `parked for ${formatWait(outcome.afterMs)}: ${toPlainLine(sentence)}:`
  return `${outcome.type === 'retry' ? 'failed' : 'failed for good'}: ${toPlainLine(sentence)}:`
}

function quotedText({ envelope }: Lease): string {
  const text = toPlainLine(joinText(envelope.message.parts.map(toRequestPart)))
  return `"${shorten(text, TEXT_CHARACTERS_MAX)}"`
}

/** One line without control and format characters. */
const toPlainLine = (text: string): string => text.replaceAll(/[\p{Cc}\p{Cf}]+/gu, ' ').trim()

const formatSeconds = (ms: number): string =>
  ms < 10_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 1000)} s`

const formatTime = (ms: number): string => new Date(ms).toTimeString().slice(0, 8)
