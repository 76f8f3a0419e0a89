/**
 * Turns the log of a task into the events of its webhook: every status change, and complete artifacts instead of chunks.
 * Invariant: the same log gives the same events with the same numbers, so a cursor is all that must be stored.
 */
import type { PushCursor } from '../../inbox/delivery.ts'
import type { LogEntry } from '../../inbox/reception.ts'
import { type Artifact, isFinal, isInterrupted, type StreamResponse, type Task } from '../../protocol/a2a.ts'
import { mergeArtifact } from '../../protocol/merge-artifact.ts'

export interface WebhookEvent extends PushCursor {
  readonly event: StreamResponse
  /** The task after the event: its status and the complete artifacts so far, without history. */
  readonly task: Task
}

/**
 * Reads the log from its beginning, because the first chunk of an artifact may be older than the cursor. The log must
 * have whole replies: their chunks are pruned after an hour, and no event may depend on them.
 */
export async function* webhookEvents(log: AsyncIterable<LogEntry>): AsyncIterable<WebhookEvent> {
  const assembler = createArtifactAssembler()
  let task: Task | undefined
  for await (const { seq, wire } of log) {
    const events = wire.flatMap(assembler.take)
    for (const [index, event] of events.entries()) {
      task = taskAfter(task, event)
      // Numbers begin at 1: a cursor with 0 has seen no event of this row.
      yield { seq, k: index + 1, event, task }
    }
  }
}

function taskAfter(before: Task | undefined, { statusUpdate, artifactUpdate }: StreamResponse): Task {
  const { taskId = '', contextId = '' } = statusUpdate ?? artifactUpdate ?? {}
  // The first status may be pruned: a task with an artifact has begun.
  const task: Task = before ?? { id: taskId, contextId, status: { state: 'TASK_STATE_WORKING' } }
  if (statusUpdate !== undefined) return { ...task, status: statusUpdate.status }
  if (artifactUpdate === undefined) return task
  return { ...task, artifacts: mergeArtifact(task.artifacts ?? [], { ...artifactUpdate, append: false }) }
}

function createArtifactAssembler() {
  let artifacts: Artifact[] = []
  const open = new Set<string>()
  const complete = (
    { taskId, contextId }: { taskId: string; contextId: string },
    artifact: Artifact,
  ): StreamResponse => {
    open.delete(artifact.artifactId)
    return { artifactUpdate: { taskId, contextId, artifact, append: false, lastChunk: true } }
  }
  return {
    take(event: StreamResponse): StreamResponse[] {
      const { artifactUpdate, statusUpdate } = event
      if (artifactUpdate !== undefined) {
        const { artifact, append = false, lastChunk = false } = artifactUpdate
        artifacts = mergeArtifact(artifacts, { artifact, append })
        open.add(artifact.artifactId)
        const merged = artifacts.find(({ artifactId }) => artifactId === artifact.artifactId) as Artifact
        return lastChunk ? [complete(artifactUpdate, merged)] : []
      }
      if (statusUpdate === undefined) return []
      const { state } = statusUpdate.status
      // Some agents never mark a last chunk: the end of the task completes their artifacts.
      const ended = isFinal(state) || isInterrupted(state)
      const left = ended ? artifacts.filter(({ artifactId }) => open.has(artifactId)) : []
      return [...left.map((artifact) => complete(statusUpdate, artifact)), event]
    },
  }
}
