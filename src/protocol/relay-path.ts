/**
 * The path of a message through relays and delegations: the ids of their workspaces, in `molecule_path` of its metadata.
 * Prevents a relay that waits for itself for ever, and agents that delegate to each other for ever: admission refuses a
 * message that comes back to a workspace of its path, and names the circle.
 */
import { MoleculeError } from '../errors.ts'
import type { Metadata } from './a2a.ts'

export const RELAY_PATH_KEY = 'molecule_path'
const PATH_WORKSPACES_MAX = 5

/** Throws `forbidden` if the message has already been at this workspace, or at 5 workspaces. */
export function refuseLoop(metadata: Metadata | undefined, workspaceId: string): void {
  const path = relayPathOf(metadata)
  if (path.length === 0) return
  const way = [...path, workspaceId].join(' -> ')
  if (path.includes(workspaceId)) throw new MoleculeError('forbidden', `the message goes in a circle: ${way}`)
  if (path.length < PATH_WORKSPACES_MAX) return
  throw new MoleculeError(
    'forbidden',
    `the message has already passed ${PATH_WORKSPACES_MAX} relays: ${way} (a delegation counts as a relay)`,
  )
}

/** How many more times a message with this path may be delegated. */
export const depthLeft = (path: readonly string[]): number => PATH_WORKSPACES_MAX - 1 - path.length

/** The path with this workspace at its end, for the message that the relay sends on. */
export function extendRelayPath(metadata: Metadata | undefined, workspaceId: string): string[] {
  refuseLoop(metadata, workspaceId)
  return [...relayPathOf(metadata), workspaceId]
}

/** Anything else than a list counts as no path. */
export function relayPathOf(metadata: Metadata | undefined): string[] {
  const path = metadata?.[RELAY_PATH_KEY]
  return Array.isArray(path) ? path.filter((step) => typeof step === 'string') : []
}
