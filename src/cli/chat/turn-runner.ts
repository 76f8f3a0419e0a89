/** Shows one turn of a chat from its message to its end: status line, answer, permissions, files. */
import { toMoleculeError } from '../../errors.ts'
import { type SaveOptions, saveAnswerFiles } from '../files/save-files.ts'
import type { ChatConversation } from './conversation.ts'
import { askPermission, type PermissionPromptOptions } from './permission-prompt.ts'
import type { ChatScreen } from './screen.ts'
import type { ChatEvent } from './turn-events.ts'
import type { TurnStatus } from './turn-status.ts'

export interface TurnRunner {
  /** Shows a turn until its end. A failure becomes a note and does not end the chat. */
  run(events: AsyncIterable<ChatEvent>): Promise<void>
  /** Stops the running turn; false when none runs. */
  interrupt(): boolean
}

export interface TurnRunnerOptions extends SaveOptions, PermissionPromptOptions {
  readonly conversation: () => ChatConversation
  readonly screen: ChatScreen
  readonly status: TurnStatus
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
