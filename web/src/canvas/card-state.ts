/** What a card says about its workspace: the dot, one banner at most, and one line with its state and its counts. */
import type { WorkspaceSummary } from '../../../src/client/views.ts'
import { printableName } from '../../../src/printable.ts'
import { beginSentence } from '../api/sentence.ts'
import type { ShownWorkspace } from '../api/shown-workspace.ts'
import type { DotState } from '../ui/dot.tsx'
import { costText, countText } from '../ui/text/times.ts'

export interface CardState {
  /** Every state that it is in, the most urgent first: a paused workspace may need a person too. */
  readonly states: readonly [DotState, ...DotState[]]
  readonly dot: DotState
  /** The states in words: they stand for the dot in text and for screen readers. */
  readonly word: string
  /** Amber: what it does now, and since when. Red: why it needs a person. */
  readonly banner?: { readonly kind: 'working' | 'needs'; readonly text: string; readonly since?: string }
  /** What the banner does not say: `paused`, or `working` below a red banner. */
  readonly note: string
  /** The line at the end of the card, left and right. `answeredAt` stands at the right where there is no cost. */
  readonly left: string
  readonly right: string
  readonly answeredAt?: string
}

export function cardStateOf(workspace: ShownWorkspace): CardState {
  const { status, queue_depth: depth = 0 } = workspace
  const needs = needsBanner(workspace)
  const working = status === 'offline' ? undefined : workingBanner(workspace)
  const base = baseState(status)
  const states = [needs && 'needs', base, working && 'working'].filter((state) => state !== undefined)
  const [dot = 'online', ...more] = states as DotState[]
  const banner = needs ?? working
  const note = join(baseNote(workspace), needs && working ? 'working' : '')
  const queued = depth === 0 ? '' : `${countText(depth)} ${base === undefined ? 'queued' : 'waiting'}`
  return {
    states: [dot, ...more],
    dot,
    word: [dot, ...more]
      .map((state) => (state === 'offline' && status === 'provisioning' ? 'starting' : WORDS[state]))
      .join(', '),
    banner,
    note,
    left: join(note, queued) || (banner ? '' : 'idle'),
    ...rightOf(workspace),
  }
}

const WORDS: Readonly<Record<DotState, string>> = {
  needs: 'needs you',
  paused: 'paused',
  offline: 'offline',
  working: 'working',
  online: 'online',
}

/** A state that holds whether or not a turn runs. */
function baseState(status: WorkspaceSummary['status']): DotState | undefined {
  if (status === 'paused') return 'paused'
  return status === 'offline' || status === 'provisioning' ? 'offline' : undefined
}

function baseNote({ status, status_reason: reason }: WorkspaceSummary): string {
  if (status === 'paused') return 'paused'
  if (status === 'provisioning') return 'starting'
  return status === 'offline' || status === 'degraded' ? (reason ?? status) : ''
}

function needsBanner({ status, status_reason: reason, needs_you: needs }: WorkspaceSummary): CardState['banner'] {
  const text = (sentence: string) => ({ kind: 'needs', text: beginSentence(sentence) }) as const
  if (status === 'failed') return text(reason ?? 'it cannot run')
  if (needs) return text(needs.reason)
  return status === 'needs_login' ? text(reason ?? 'it is not logged in') : undefined
}

/** What a turn does, or what the workspace says that it does: its status text, or the task of a heartbeat. */
function workingBanner(workspace: ShownWorkspace): CardState['banner'] {
  const { running = 0, current_task: task, current_since: since, waitsFor = [] } = workspace
  const { status_text: statusText, status_text_at: statusTextAt } = workspace
  const working = (text: string, at?: string | null) => ({ kind: 'working', text, ...(at && { since: at }) }) as const
  if (running > 0) {
    const text = statusText || task || 'working'
    return working(running === 1 ? text : `${running} turns: ${text}`, since)
  }
  if (statusText) return working(statusText, statusTextAt)
  // A turn that waits for others gives its place to other turns, so it is not among those that run.
  if (waitsFor.length > 0) return working(waitingText(waitsFor))
  return task ? working(task) : undefined
}

const NAMES_MAX = 2

function waitingText(names: readonly string[]): string {
  if (names.length <= NAMES_MAX) return `waiting for ${names.join(' and ')}`
  return `waiting for ${names.slice(0, NAMES_MAX).join(', ')} and ${names.length - NAMES_MAX} more`
}

function rightOf({ today, last_answered_at: answeredAt }: WorkspaceSummary): Pick<CardState, 'right' | 'answeredAt'> {
  const answered = answeredAt === undefined ? {} : { answeredAt }
  if (today === undefined || today.turns === 0) return { right: '', ...answered }
  const { cost_usd: usd, unknown_turns: unknown } = today
  return { right: usd === null ? 'cost unknown' : `${costText(usd, unknown > 0)} today`, ...answered }
}

const join = (...parts: readonly string[]): string => parts.filter(Boolean).join(' · ')

/** The card in one line: `paused · A message failed for good`. */
export const lineOf = ({ note, banner, left }: CardState): string => (banner ? join(note, banner.text) : left)

/** What a card leaves out or cuts off, for a mouse that rests on it. */
export function hintOf({ name, runtime, model, limits = [] }: WorkspaceSummary, { banner, left }: CardState): string {
  const agent = model ? `${runtime}, ${printableName(model)}` : runtime
  return [name, agent, banner?.text ?? left, ...limits.map(beginSentence)].filter(Boolean).join('\n')
}

/** The whole card in a sentence, for screen readers. */
export function labelOf({ name, limits }: WorkspaceSummary, { word, banner }: CardState): string {
  const state = limits === undefined ? word : `${word}, limited`
  return banner === undefined ? `${name}, ${state}` : `${name}, ${state}: ${banner.text}`
}
