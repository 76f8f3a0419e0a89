/** What a workspace does before it acts, as the end of a sentence. Pure. */
import type { WorkspaceSummary } from '../../../../src/client/workspace-calls.ts'

/** Agents whose tools a person can allow or deny. A shell command, a mock or a model API has none to ask about. */
const WITH_PERMISSIONS: ReadonlySet<string> = new Set(['acp', 'claude-code', 'codex', 'gemini', 'hermes', 'opencode'])

type PermissionOf = Pick<WorkspaceSummary, 'runtime' | 'permission' | 'runtime_config'>

/** Undefined where there is nothing to say: the program does what it does with each message. */
export function permissionWords({ runtime, permission, runtime_config: settings }: PermissionOf): string | undefined {
  if (!WITH_PERMISSIONS.has(runtime)) return undefined
  const chosen = permission ?? settings?.['permission']
  if (chosen === 'bypass') return 'acts without asking'
  // A process for each message cannot wait for a person.
  if (chosen === 'allowed_tools' || settings?.['mode'] === 'oneshot') return 'uses only the tools that you have allowed'
  return 'asks before it acts'
}
