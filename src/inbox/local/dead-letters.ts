/** Dead letters: messages that failed for good, kept until a person replays or discards them. */
import { discard, replay } from '../commands/replay.ts'
import type { DeadLetters } from '../owners.ts'
import type { InboxContext } from './context.ts'
import { lookForWork } from './directives.ts'

export function createDeadLetters(context: InboxContext): DeadLetters {
  const { store, changed } = context
  return {
    async replay(workspaceId, messageId) {
      const taskId = await store.write(() => replay(workspaceId, messageId), workspaceId)
      changed(workspaceId, taskId)
      lookForWork(context)
      return taskId
    },
    async discard(workspaceId, messageId) {
      await store.write(() => discard(workspaceId, messageId), workspaceId)
      changed(workspaceId, messageId)
    },
  }
}
