/**
 * What a webhook is told of a task, made of its log: every status, and artifacts whole, not in pieces.
 * Invariant: the same log gives the same events under the same numbers, so that a cursor is all that has to be kept.
 */

import type { PushCursor } from '../../inbox/delivery.ts'
import type { LogEntry } from '../../inbox/inbox.ts'
import { type Artifact, isFinal, isInterrupted, type StreamResponse } from '../../protocol/a2a.ts'
import { mergeArtifact } from '../../protocol/merge-artifact.ts'

export interface WebhookEvent extends PushCursor {
  readonly event: StreamResponse
}

/** Of the whole log, from its beginning: an artifact's first piece may be older than the cursor. */
export async function* webhookEvents(log: AsyncIterable<LogEntry>): AsyncIterable<WebhookEvent> {
  const assembling = createArtifactAssembler()
  for await (const { seq, wire } of log) {
    const events = wire.flatMap(assembling.take)
    // Numbers begin at 1: 0 is a cursor that has seen the entry before and nothing of this one.
    for (const [index, event] of events.entries()) yield { seq, k: index + 1, event }
  }
}

/** Pieces of a reply are pruned an hour after it: what is made of them must not depend on their being there. */
const isReply = ({ artifactId }: Artifact): boolean => artifactId.startsWith('reply-')

function createArtifactAssembler() {
  let artifacts: Artifact[] = []
  const open = new Set<string>()
  const whole = (names: { taskId: string; contextId: string }, artifact: Artifact): StreamResponse => {
    open.delete(artifact.artifactId)
    const { taskId, contextId } = names
    return { artifactUpdate: { taskId, contextId, artifact, append: false, lastChunk: true } }
  }
  return {
    take(event: StreamResponse): StreamResponse[] {
      const { artifactUpdate, statusUpdate } = event
      if (artifactUpdate !== undefined) {
        const { artifact, append = false, lastChunk = false } = artifactUpdate
        if (isReply(artifact)) return lastChunk ? [event] : []
        artifacts = mergeArtifact(artifacts, { artifact, append })
        open.add(artifact.artifactId)
        const merged = artifacts.find(({ artifactId }) => artifactId === artifact.artifactId) as Artifact
        return lastChunk ? [whole(artifactUpdate, merged)] : []
      }
      if (statusUpdate === undefined) return []
      const { state } = statusUpdate.status
      // An agent that never said which chunk was the last has said so by ending.
      const ended = isFinal(state) || isInterrupted(state)
      const left = ended ? artifacts.filter(({ artifactId }) => open.has(artifactId)) : []
      return [...left.map((artifact) => whole(statusUpdate, artifact)), event]
    },
  }
}
