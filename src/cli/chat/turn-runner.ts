/** Shows one turn of a chat from its message to its end: status line, answer, permissions, files. */

import type { PendingAskView } from '../../client/pending-calls.ts'
import { systemClock } from '../../clock.ts'
import { toMoleculeError } from '../../errors.ts'
import { printable, printableName } from '../../printable.ts'
import { sleep } from '../../wait.ts'
import { type SaveOptions, saveAnswerFiles } from '../files/save-files.ts'
import type { ChatConversation, ChatEvent } from './conversation.ts'
import type { ChatKeyboard } from './keyboard.ts'
import type { ChatScreen } from './screen.ts'
import type { TurnStatus } from './turn-status.ts'

/** The permission requests of agents. */
export interface ChatPermissions {
  answerAsk(id: string, decision: 'allow' | 'deny'): Promise<void>
  allowAlways(id: string): Promise<unknown>
  listPendingAsks(): Promise<readonly { readonly id: string }[]>
}

export interface TurnRunner {
  /** Shows a turn until its end. A failure becomes a note and does not end the chat. */
  run(events: AsyncIterable<ChatEvent>): Promise<void>
  /** Stops the running turn; false when none runs. */
  interrupt(): boolean
}

export interface TurnRunnerOptions extends SaveOptions {
  readonly conversation: () => ChatConversation
  readonly permissions: ChatPermissions
  readonly screen: ChatScreen
  readonly status: TurnStatus
  readonly keyboard: Pick<ChatKeyboard, 'nextFresh' | 'leaving'>
}

export function createTurnRunner(options: TurnRunnerOptions): TurnRunner {
  const { conversation, screen, status } = options
  let stopped: AbortController | undefined
  return {
    async run(events) {
      const stop = new AbortController()
      stopped = stop
      status.begin()
      try {
        for await (const event of events) await showEvent(event, options, stop.signal)
      } catch (thrown) {
        screen.note(toMoleculeError(thrown).message)
      } finally {
        status.end()
        stopped = undefined
      }
    },
    interrupt() {
      if (stopped === undefined) return false
      // Also withdraws an open permission prompt.
      stopped.abort()
      status.setReason('stopping')
      conversation()
        .stop()
        .catch((thrown: unknown) => {
          const { code, message } = toMoleculeError(thrown)
          // The turn ended in the same moment, and its answer is shown.
          if (code !== 'not_cancelable') screen.note(`the turn could not be stopped: ${message}`)
        })
      return true
    },
  }
}

async function showEvent(event: ChatEvent, options: TurnRunnerOptions, stop: AbortSignal): Promise<void> {
  const { screen, status } = options
  if (event.type === 'permission') {
    status.suspend()
    await askPermission(event.pending, options, stop)
    return status.resume()
  }
  if (event.type === 'tool') status.setTool(event)
  screen.show(event)
  if (event.type !== 'end') return
  for (const line of await saveAnswerFiles(event.task, options)) screen.note(line)
}

async function askPermission(
  { id, tool, subject, would_cover: rule }: PendingAskView,
  { screen, keyboard, permissions }: TurnRunnerOptions,
  stop: AbortSignal,
): Promise<void> {
  screen.note(`${printableName(tool)}: ${printable(subject)}`)
  const answered = new AbortController()
  const ends = AbortSignal.any([stop, answered.signal, keyboard.leaving])
  void watchUntilAnswered(id, permissions, ends).then(() => answered.abort())
  const answer = await keyboard.nextFresh(rule ? 'allow it? (y/n, a = always exactly this) ' : 'allow it? (y/n) ', ends)
  answered.abort()
  if (answer === undefined) {
    process.stdout.write('\n')
    return stop.aborted ? undefined : screen.note('answered elsewhere')
  }
  const always = rule !== undefined && /^a(lways)?$/i.test(answer.trim())
  const decision = always || /^y(es)?$/i.test(answer.trim()) ? 'allow' : 'deny'
  try {
    if (!always) await permissions.answerAsk(id, decision)
    else await permissions.allowAlways(id).then(() => screen.note(`from now on: ${rule.sentence}`))
    screen.note(decision === 'allow' ? 'allowed' : 'denied')
  } catch (thrown) {
    // Answered elsewhere, or too late: the turn and the chat continue.
    screen.note(toMoleculeError(thrown).message)
  }
}

const POLL_MS = 2000

/** Resolves when the request is answered elsewhere, or when the signal aborts. A poll that fails counts as still open. */
async function watchUntilAnswered(id: string, permissions: ChatPermissions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleep(systemClock, POLL_MS, signal)
    const open = await permissions.listPendingAsks().catch(() => [{ id }])
    if (!open.some((one) => one.id === id)) return
  }
}
