/** What a card says about its workspace: the dot, one banner at most, and one line of counts. */
import type { WorkspaceSummary } from '../../../src/client/workspace-calls.ts'
import type { ShownWorkspace } from '../api/shown-workspace.ts'
import type { DotState } from '../ui/dot.tsx'
import { beginSentence } from '../ui/sentence.ts'
import { costText, countText } from '../ui/times.ts'

export interface CardState {
  readonly dot: DotState
  /** The state in a word or two: it stands for the dot in text and for screen readers. */
  readonly word: string
  /** Amber: what it does now, and since when. Red: why it needs a person. */
  readonly banner?: { readonly kind: 'working' | 'needs'; readonly text: string; readonly since?: string }
  /** The line of counts: left and right. `answeredAt` stands at the right where there is no cost. */
  readonly left: string
  readonly right: string
  readonly answeredAt?: string
}

export function cardStateOf(workspace: ShownWorkspace): CardState {
  const { status, status_reason: reason, queue_depth: depth = 0 } = workspace
  const counts = rightOf(workspace)
  const queued = depth === 0 ? '' : `${countText(depth)} queued`
  const waiting = depth === 0 ? '' : `${countText(depth)} waiting`
  const needs = needsText(workspace)
  if (needs !== undefined) {
    return { dot: 'needs', word: 'needs you', banner: { kind: 'needs', text: needs }, left: queued, ...counts }
  }
  if (status === 'paused') return { dot: 'paused', word: 'paused', left: join('paused', waiting), ...counts }
  if (status === 'offline') {
    return { dot: 'offline', word: 'offline', left: join(reason ?? 'offline', waiting), ...counts }
  }
  const banner = workingBanner(workspace)
  if (banner !== undefined) return { dot: 'working', word: 'working', banner, left: queued, ...counts }
  if (status === 'provisioning') return { dot: 'offline', word: 'starting', left: join('starting', queued), ...counts }
  const left = status === 'degraded' ? (reason ?? 'degraded') : workspace.status_text
  return { dot: 'online', word: 'online', left: left || queued || 'idle', ...counts }
}

function needsText({ status, status_reason: reason, needs_you: needs }: WorkspaceSummary): string | undefined {
  if (status === 'failed') return beginSentence(reason ?? 'it cannot run')
  if (needs) return beginSentence(needs.reason)
  return status === 'needs_login' ? beginSentence(reason ?? 'it is not logged in') : undefined
}

function workingBanner(workspace: ShownWorkspace): CardState['banner'] {
  const { running = 0, current_task: task, status_text: said, current_since: since, waitsFor = [] } = workspace
  // A turn that waits for others gives its place to other turns, so it is not among those that run.
  if (running === 0) return waitsFor.length === 0 ? undefined : { kind: 'working', text: waitingText(waitsFor) }
  const text = said || task || 'working'
  return { kind: 'working', text: running === 1 ? text : `${running} turns: ${text}`, ...(since && { since }) }
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

/** The whole card in a sentence, for screen readers. */
export const labelOf = ({ name }: WorkspaceSummary, { word, banner }: CardState): string =>
  banner === undefined ? `${name}, ${word}` : `${name}, ${word}: ${banner.text}`
