/** What a person has written into the form of a new workspace: what is missing, and the body that makes it. Pure. */
import type { WorkspaceBody } from '../../../src/client/workspaces.ts'
import type { AgentPermission } from './permission-choice.tsx'
import { canAsk, fieldsOf, hasModel } from './runtimes.ts'

export interface LocalDraft {
  /** Empty = the first that is offered. */
  readonly backend: string
  readonly name: string
  readonly role: string
  readonly folder: string
  /** By their key in `runtime_config`. */
  readonly options: Readonly<Record<string, string>>
  readonly model: string
  readonly parentId: string
  readonly permission: AgentPermission
  readonly allowedTools: string
}

export const EMPTY_DRAFT: LocalDraft = {
  backend: '',
  name: '',
  role: '',
  folder: '',
  options: {},
  model: '',
  parentId: '',
  permission: 'ask',
  allowedTools: '',
}

/** By the name of the field. */
export function findProblems(draft: LocalDraft, taken: ReadonlySet<string>): Readonly<Record<string, string>> {
  const { backend, name, model, options } = draft
  const problems: Record<string, string> = {}
  const textOf = (key: string) => options[key]?.trim() ?? ''
  if (taken.has(name.trim())) {
    problems['name'] = `There is a workspace called ${name.trim()} already. Choose another name.`
  }
  if (backend === 'openai' && model.trim() === '') problems['model'] = 'Write the name of the model.'
  for (const { key, missing } of fieldsOf(backend)) {
    if (missing !== undefined && textOf(key) === '') problems[`runtime_config.${key}`] = missing
  }
  if (backend === 'mcp' && (textOf('command') === '') === (textOf('url') === '')) {
    problems['runtime_config.command'] = 'Write either the command of the server or its URL.'
  }
  return problems
}

interface KnownValues {
  readonly suggested: string
  readonly path: string | undefined
}

export function toBody(draft: LocalDraft, { suggested, path }: KnownValues): WorkspaceBody {
  const { backend, name, role, model, parentId, permission, allowedTools } = draft
  const isSet = canAsk(backend) && permission !== 'ask'
  const options = Object.fromEntries(
    fieldsOf(backend)
      .map(({ key }) => [key, draft.options[key]?.trim() ?? ''] as const)
      .filter(([, value]) => value !== ''),
  )
  const tools = isSet && permission === 'allowed_tools' && allowedTools.trim()
  const config = { ...options, ...(tools && { allowed_tools: tools }) }
  return {
    name: name.trim() || suggested,
    runtime: backend,
    ...(role.trim() && { role: role.trim() }),
    ...(hasModel(backend) && model.trim() && { model: model.trim() }),
    ...(parentId && { parent_id: parentId }),
    ...(path && { working_dir: path }),
    ...(isSet && { permission }),
    ...(Object.keys(config).length > 0 && { runtime_config: config }),
  }
}
