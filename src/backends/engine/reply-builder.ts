/**
 * Builds the reply of an agent while it arrives: text deltas, with a new paragraph after each tool, and at the end a
 * note on the denied tools. Invariant: the deltas joined are the reply, including that note, and neither the reply nor a
 * new paragraph begins with blank lines (hermes sends two before the text that follows a tool).
 */
import type { BackendEvent } from '../backend.ts'
import { emptyResponse } from './failure/agent-errors.ts'
import type { EndEvent } from './turn-engine.ts'

/** Any event except the end. */
export type ProgressEvent = Exclude<BackendEvent, EndEvent>

/** The events of a line that has no content for the caller: the agent is alive. */
export const ACTIVITY: readonly ProgressEvent[] = [{ type: 'activity' }]

export interface ReplyBuilder {
  /** The event for a piece of the reply; none for an empty piece. */
  append(text: string): readonly ProgressEvent[]
  /** The next piece starts a new paragraph. */
  startParagraph(): void
  /** Records a tool that the agent was not allowed to use. */
  addDenied(tool: string): void
  text(): string
  /** The last events (the note on denied tools) and the end: `done`, or `failed` if there is no text at all. */
  finish(backend: string): { readonly last: readonly ProgressEvent[]; readonly end: EndEvent }
}

const BLANK_LINES = /^(?:[ \t]*\r?\n)+/

export function createReplyBuilder(): ReplyBuilder {
  let text = ''
  let startsParagraph = false
  const denied = new Set<string>()
  const append = (piece: string): readonly ProgressEvent[] => {
    const added = startsParagraph || text === '' ? piece.replace(BLANK_LINES, '') : piece
    if (added === '') return []
    const gap = startsParagraph && text !== '' && !text.endsWith('\n') ? '\n\n' : ''
    startsParagraph = false
    text += gap + added
    return [{ type: 'text', delta: gap + added }]
  }
  return {
    append,
    startParagraph: () => {
      startsParagraph = true
    },
    addDenied: (tool) => denied.add(tool),
    text: () => text,
    finish(backend) {
      startsParagraph = true
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
