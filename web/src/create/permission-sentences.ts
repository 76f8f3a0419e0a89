/** What a workspace may do without asking a person, and the words of the page for it. Pure. */
import type { WorkspaceSummary } from '../../../src/client/views.ts'
import type { AgentPermission } from './permission-choice.tsx'
import { canAsk } from './runtimes.ts'

export const PERMISSION_SENTENCES = {
  ask: ['asks before it acts', 'It asks you before a command or a change that no rule allows.'],
  allowed_tools: ['acts within its tools', 'It uses the tools that its settings allow, and asks for no other.'],
  bypass: ['never asks', 'It runs commands and changes files without asking.'],
} as const

type PermissionOf = Pick<WorkspaceSummary, 'runtime' | 'permission' | 'runtime_config'>

/** Undefined where a person has nothing to allow: a shell command does what it does with each message. */
export function permissionOf({
  runtime,
  permission,
  runtime_config: config,
}: PermissionOf): AgentPermission | undefined {
  const chosen = permission ?? config?.['permission']
  if (chosen === 'bypass') return 'bypass'
  if (!canAsk(runtime)) return undefined
  // A process for each message cannot wait for a person.
  return chosen === 'allowed_tools' || config?.['mode'] === 'oneshot' ? 'allowed_tools' : 'ask'
}
