/**
 * The way a message has come through relays: the ids of their workspaces, in `molecule_path` of its metadata. A message
 * that comes back to a relay it has passed would make it wait for itself for ever, so it is refused at admission, before
 * it takes a place in the queue, and the refusal names the circle.
 */
import { MoleculeError } from '../errors.ts'
import type { Metadata } from './a2a.ts'

export const RELAY_PATH_KEY = 'molecule_path'
const PATH_WORKSPACES_MAX = 5

/** Throws `forbidden` where the message has been at this workspace, or has passed too many. */
export function refuseLoop(metadata: Metadata | undefined, workspaceId: string): void {
  const path = pathOf(metadata)
  if (path.length === 0) return
  const way = [...path, workspaceId].join(' -> ')
  if (path.includes(workspaceId)) throw new MoleculeError('forbidden', `the message goes in a circle: ${way}`)
  if (path.length < PATH_WORKSPACES_MAX) return
  throw new MoleculeError('forbidden', `the message has passed ${PATH_WORKSPACES_MAX} relays already: ${way}`)
}

/** The path with this workspace at its end, for the message to take along. */
export function extendRelayPath(metadata: Metadata | undefined, workspaceId: string): string[] {
  refuseLoop(metadata, workspaceId)
  return [...pathOf(metadata), workspaceId]
}

function pathOf(metadata: Metadata | undefined): string[] {
  const path = metadata?.[RELAY_PATH_KEY]
  return Array.isArray(path) ? path.filter((step) => typeof step === 'string') : []
}
