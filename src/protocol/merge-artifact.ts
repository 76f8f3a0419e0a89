/** Artifacts that come in chunks, put together as a reader of the stream would. */
import type { Artifact } from './a2a.ts'

export interface ArtifactChunk {
  readonly artifact: Artifact
  readonly append: boolean
}

/** The artifacts with this chunk added: appended to the one of its id, or in its place. */
export function mergeArtifact(artifacts: readonly Artifact[], { artifact, append }: ArtifactChunk): Artifact[] {
  const index = artifacts.findIndex(({ artifactId }) => artifactId === artifact.artifactId)
  const known = artifacts[index]
  if (known === undefined) return [...artifacts, artifact]
  const merged = append ? { ...known, ...artifact, parts: [...known.parts, ...artifact.parts] } : artifact
  return artifacts.with(index, merged)
}
