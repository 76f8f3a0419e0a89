/**
 * The line that says what runs and for how long while a turn runs, redrawn in place. Below it is what the user has typed
 * meanwhile.
 */

import { printable, printableName, withoutControls } from '../../printable.ts'
import { shorten } from '../../truncate.ts'
import { formatSeconds } from '../terminal/human-time.ts'
import { FRAMES } from '../terminal/progress.ts'
import type { LiveArea } from './live-area.ts'

const REDRAW_MS = 200

export interface TurnStatus {
  begin(): void
  /** Why the task does not run now; empty when it runs. */
  setReason(text: string): void
  setTool(tool: { readonly name: string; readonly subject: string; readonly state: string }): void
  redraw(): void
  /** Removes the line while a prompt is shown. */
  suspend(): void
  resume(): void
  end(): void
}

export interface TurnStatusOptions {
  readonly live: LiveArea
  /** Name of the agent. */
  readonly name: string
  readonly dim: (text: string) => string
  /** The width of the terminal now. */
  readonly columns: () => number
  /** The unfinished line, and how many lines wait to be sent. */
  readonly typed: () => { readonly draft: string; readonly linesWaiting: number }
}

interface RunningTurnStatus {
  readonly startMs: number
  reason: string
  tool: { readonly name: string; readonly subject: string; readonly startMs: number } | undefined
  isSuspended: boolean
  readonly timer: NodeJS.Timeout
}

export function createTurnStatus({ live, name, dim, columns, typed }: TurnStatusOptions): TurnStatus {
  let turn: RunningTurnStatus | undefined
  let frame = 0
  const redraw = () => {
    if (turn === undefined || turn.isSuspended) return
    const { draft, linesWaiting } = typed()
    const status = dim(`${FRAMES[frame % FRAMES.length]} ${statusText(turn, name, linesWaiting)}`)
    live.set(draft === '' ? [status] : [status, `you › ${endOf(withoutControls(draft), columns() - PROMPT_COLUMNS)}`])
  }
  const tick = () => {
    frame++
    redraw()
  }
  const end = () => {
    clearInterval(turn?.timer)
    turn = undefined
    live.set([])
  }
  return {
    begin() {
      end()
      const timer = setInterval(tick, REDRAW_MS)
      turn = { startMs: performance.now(), reason: '', tool: undefined, isSuspended: false, timer }
      redraw()
    },
    setReason(text) {
      if (turn !== undefined) turn.reason = withoutControls(text).replaceAll(/\s+/g, ' ')
      redraw()
    },
    setTool({ state, ...tool }) {
      if (turn !== undefined) turn.tool = state === 'started' ? { ...tool, startMs: performance.now() } : undefined
      redraw()
    },
    redraw,
    suspend() {
      if (turn !== undefined) turn.isSuspended = true
      live.set([])
    },
    resume() {
      if (turn !== undefined) turn.isSuspended = false
      redraw()
    },
    end,
  }
}

const PROMPT_COLUMNS = 8

/** The end of a text that is too long, where the cursor is. */
const endOf = (text: string, characters: number): string =>
  text.length <= characters ? text : `...${text.slice(3 - Math.max(3, characters))}`

/** `ana works 12 s · Bash: npm test 3 s · 1 more to send · Ctrl-C stops`. */
function statusText({ startMs, reason, tool }: RunningTurnStatus, name: string, linesWaiting: number): string {
  const facts = [
    `${reason === '' ? `${withoutControls(name)} works` : reason} ${secondsSince(startMs)}`,
    ...(tool === undefined ? [] : [`${toolText(tool)} ${secondsSince(tool.startMs)}`]),
    ...(linesWaiting === 0 ? [] : [`${linesWaiting} more to send`]),
    'Ctrl-C stops',
  ]
  return facts.join(' · ')
}

/** The line for the tool in the answer has more of the subject. */
const SUBJECT_CHARACTERS_MAX = 32

function toolText({ name, subject }: { readonly name: string; readonly subject: string }): string {
  const cut = shorten(subject, SUBJECT_CHARACTERS_MAX)
  const shown = printable(cut.replaceAll(/\s+/g, ' '))
  return shown === '' ? printableName(name) : `${printableName(name)}: ${shown}`
}

const secondsSince = (startMs: number): string => formatSeconds(Math.floor((performance.now() - startMs) / 1000))
