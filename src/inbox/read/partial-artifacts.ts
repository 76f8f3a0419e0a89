/**
 * Partial replies: what a task has shown of replies that are not settled yet. A stream that starts in the middle of a
 * turn appends to this; without it the reader would add the end of a text to nothing.
 */
import type { Artifact, TaskArtifactUpdate } from '../../protocol/a2a.ts'
import { joinParts } from '../../protocol/merge-artifact.ts'
import type { Transaction } from '../../store/store.ts'
import type { TaskIds } from '../rows/status-message.ts'
import { readLog } from './event-log.ts'
import { createLogWire } from './log-wire.ts'

/** The artifacts in the log that no settled message has. */
export function* partialArtifacts(task: TaskIds, settled: readonly Artifact[]): Transaction<Artifact[]> {
  const whole = new Set(settled.map(({ artifactId }) => artifactId))
  const partial = new Map<string, Artifact>()
  const log = createLogWire()
  for (let afterSeq = 0; ; ) {
    const page = yield* readLog(task.id, afterSeq)
    for (const { artifactUpdate } of page.flatMap((row) => log.toEntry(task, row).wire)) {
      if (artifactUpdate !== undefined && !whole.has(artifactUpdate.artifact.artifactId)) add(partial, artifactUpdate)
    }
    const last = page.at(-1)
    if (last === undefined) break
    afterSeq = last.seq
  }
  return [...partial.values()].filter(({ parts }) => parts.length > 0)
}

function add(partial: Map<string, Artifact>, { artifact, append }: TaskArtifactUpdate): void {
  const known = partial.get(artifact.artifactId)
  const parts = append === true && known !== undefined ? joinParts(known.parts, artifact.parts) : artifact.parts
  partial.set(artifact.artifactId, { ...known, ...artifact, parts })
}
