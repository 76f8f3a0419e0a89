/**
 * Words for the activity of a workspace when its `config.yaml` changed on the disk and not through the API: an editor of
 * the owner, or an agent that gives itself other settings. It names the changed keys and never a value, which may be a
 * secret.
 */
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { WorkspaceConfig } from './config-file.ts'

/** Keys that a note names; the rest becomes "and more". */
const KEYS_NAMED_MAX = 20
const KEY_CHARACTERS_MAX = 64
const HASH_CHARACTERS = 32

/** Identifies a text of `config.yaml`. Stored with the workspace, so that a change during a downtime is found too. */
export const hashConfig = (text: string): string =>
  createHash('sha256').update(text).digest('hex').slice(0, HASH_CHARACTERS)

type ComparedConfig = Pick<WorkspaceConfig, 'name' | 'role' | 'runtime' | 'model' | 'runtimeConfig'>

export function describeOutsideChange(before: ComparedConfig, after: ComparedConfig): string {
  const keys = (['name', 'role', 'runtime', 'model'] as const).filter((key) => before[key] !== after[key])
  const options = new Set([...Object.keys(before.runtimeConfig), ...Object.keys(after.runtimeConfig)])
  const changed = [...options].filter((key) => !isDeepStrictEqual(before.runtimeConfig[key], after.runtimeConfig[key]))
  const all = [...keys, ...changed.sort().map((key) => `runtime_config.${key.slice(0, KEY_CHARACTERS_MAX)}`)]
  const named = all.slice(0, KEYS_NAMED_MAX).join(', ') + (all.length > KEYS_NAMED_MAX ? ' and more' : '')
  return `${OUTSIDE}: ${all.length === 0 ? 'no setting that the platform reads differs' : `changed ${named}`}`
}

const OUTSIDE = 'config.yaml was changed on the disk, not through the API'

export const INVALID_OUTSIDE_CHANGE = `${OUTSIDE}: it is invalid now`
export const REMOVED_OUTSIDE = 'config.yaml was removed from the disk, not through the API: it has been restored'
