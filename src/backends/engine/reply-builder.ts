/**
 * The answer of an agent while it comes: text in deltas, with a new paragraph where it goes on after a tool, the tools
 * that were denied, and the end made of both. Invariant: the deltas joined are the reply, the note on denied tools
 * included.
 */
import type { BackendEvent } from '../backend.ts'
import { emptyResponse } from './failure/agent-errors.ts'
import type { EndEvent } from './turn-engine.ts'

/** All but the end. */
export type ProgressEvent = Exclude<BackendEvent, EndEvent>

/** The events of a line that has no content for the caller: the agent is alive. */
export const ACTIVITY: readonly ProgressEvent[] = [{ type: 'activity' }]

export interface ReplyBuilder {
  /** The event for a piece of the answer; none for an empty one. */
  append(text: string): readonly ProgressEvent[]
  /** What is said next is a paragraph of its own. */
  startParagraph(): void
  /** A tool that the agent wanted and was not allowed. */
  addDenied(tool: string): void
  text(): string
  /** What was denied, said last, and the end: `done`, or `failed` where nothing was said at all. */
  finish(backend: string): { readonly last: readonly ProgressEvent[]; readonly end: EndEvent }
}

export function createReplyBuilder(): ReplyBuilder {
  let text = ''
  let paused = false
  const denied = new Set<string>()
  const append = (added: string): readonly ProgressEvent[] => {
    if (added === '') return []
    const gap = paused && text !== '' && !text.endsWith('\n') ? '\n\n' : ''
    paused = false
    text += gap + added
    return [{ type: 'text', delta: gap + added }]
  }
  return {
    append,
    startParagraph: () => {
      paused = true
    },
    addDenied: (tool) => denied.add(tool),
    text: () => text,
    finish(backend) {
      paused = true
      const note = denied.size > 0 ? append(`(Not allowed in this turn: ${[...denied].join(', ')}.)`) : []
      if (text === '') return { last: [], end: { type: 'failed', error: emptyResponse(backend) } }
      return { last: note, end: { type: 'done', parts: [{ text }], finality: 'completed' } }
    },
  }
}

type UsageEvent = Extract<BackendEvent, { type: 'usage' }>

/** The usage of a turn as the agent reports it; no event if it reports nothing. A value that is no number is left out. */
export function usageEvents(reported: Readonly<Partial<Record<UsageKey, unknown>>>): readonly UsageEvent[] {
  const known = Object.entries(reported).filter(([, value]) => Number.isFinite(value) && Number(value) >= 0)
  return known.length === 0 ? [] : [{ type: 'usage', ...Object.fromEntries(known) }]
}

type UsageKey = 'inputTokens' | 'outputTokens' | 'costUsd'
