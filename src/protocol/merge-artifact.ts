/** Joins artifacts that arrive in chunks, as a reader of the stream does. */
import type { Artifact, Part } from './a2a.ts'

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

/** Chunks of one text become one part; all other parts come one after the other. */
export function joinParts(known: readonly Part[], more: readonly Part[]): readonly Part[] {
  const [last, next] = [known.at(-1), more[0]]
  if (!isBareText(last) || !isBareText(next)) return [...known, ...more]
  return [...known.slice(0, -1), { text: `${last.text}${next.text}` }, ...more.slice(1)]
}

export const isBareText = (part: Part | undefined): part is Part & { readonly text: string } =>
  part?.text !== undefined && Object.keys(part).length === 1
