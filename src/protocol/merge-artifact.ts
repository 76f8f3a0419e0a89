/** Joins artifacts that arrive in chunks, as a reader of the stream does. */
import type { Artifact } from './a2a.ts'

export interface ArtifactChunk {
  readonly artifact: Artifact
  readonly append: boolean
}

/** Appends the chunk to the artifact of its id, or replaces that artifact. */
export function mergeArtifact(artifacts: readonly Artifact[], { artifact, append }: ArtifactChunk): Artifact[] {
  const index = artifacts.findIndex(({ artifactId }) => artifactId === artifact.artifactId)
  const known = artifacts[index]
  if (known === undefined) return [...artifacts, artifact]
  const merged = append ? { ...known, ...artifact, parts: [...known.parts, ...artifact.parts] } : artifact
  return artifacts.with(index, merged)
}
