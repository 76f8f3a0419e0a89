/** The form for a workspace whose agent runs on the platform's machine. */
import { type FormEvent, useState } from 'react'
import { MoleculeError } from '../../../src/errors.ts'
import { reasonOf } from '../api/client.ts'
import { useWorkspaces } from '../api/queries.ts'
import { Button } from '../ui/button.tsx'
import { Field } from '../ui/field.tsx'
import { OptionCards } from '../ui/option-cards.tsx'
import { Select } from '../ui/select.tsx'
import { type AgentChoice, freeName, MOCK, SHELL_COMMAND } from './agents.ts'
import { FolderField } from './folder-field.tsx'
import { lastPart } from './folders.ts'
import { useAgents } from './use-agents.ts'
import { useCreate } from './use-create.ts'
import { useFolder } from './use-folder.ts'

type Permission = 'ask' | 'allowed_tools' | 'bypass'

const PERMISSIONS: readonly { readonly id: Permission; readonly title: string; readonly about: string }[] = [
  { id: 'ask', title: 'Ask me', about: 'It asks before it runs a command or changes a file.' },
  { id: 'allowed_tools', title: 'Only allowed tools', about: 'It uses the tools you list. All others are refused.' },
  { id: 'bypass', title: 'Everything, without asking', about: 'It never asks. A badge on its card says so.' },
]

interface LocalDraft {
  readonly backend: string
  readonly name: string
  readonly role: string
  readonly folder: string
  readonly cmd: string
  readonly model: string
  readonly parentId: string
  readonly permission: Permission
  readonly allowedTools: string
}

const EMPTY: LocalDraft = {
  ...{ backend: '', name: '', role: '', folder: '', cmd: '', model: '' },
  ...{ parentId: '', permission: 'ask', allowedTools: '' },
}

export function LocalForm({ onClose }: { readonly onClose: () => void }) {
  const { choices, error: agentsError } = useAgents()
  const workspaces = useWorkspaces()
  const [draft, setDraft] = useState(EMPTY)
  const [isTried, setTried] = useState(false)
  const change = (more: Partial<LocalDraft>) => setDraft((before) => ({ ...before, ...more }))
  const folder = useFolder(draft.folder)
  const create = useCreate()
  const offered = [...(choices ?? []), SHELL_COMMAND, MOCK]
  const agent = offered.find(({ backend }) => backend === draft.backend) ?? offered[0] ?? MOCK
  const taken = new Set([...workspaces.values()].map(({ name }) => name))
  const suggested = freeName(lastPart(folder.path ?? '') || agent.name, taken)
  const problems = findProblems({ ...draft, backend: agent.backend }, taken)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setTried(true)
    const isWrong = Object.keys(problems).length > 0 || folder.problem !== undefined || folder.isChecking
    if (!isWrong) create.mutate(toBody({ ...draft, backend: agent.backend }, { suggested, path: folder.path }))
  }
  const refused = create.error instanceof MoleculeError ? create.error.details?.['path'] : undefined
  const errorOf = (field: string, problem?: string) =>
    (isTried ? problem : undefined) ?? (refused === field && create.error ? reasonOf(create.error) : undefined)
  const isElsewhere = create.error !== null && !FIELDS_WITH_ERRORS.has(String(refused))
  return (
    <form onSubmit={submit} className="flex flex-col gap-5">
      <OptionCards
        label="Runtime"
        options={offered.map(toOption)}
        chosen={agent.backend}
        onChoose={(backend) => change({ backend })}
      />
      {agentsError === null ? null : <p className="text-needs text-second">{reasonOf(agentsError)}</p>}
      {agent.backend === 'exec' ? (
        <Field
          label="Command"
          value={draft.cmd}
          onChange={({ target }) => change({ cmd: target.value })}
          placeholder="python handler.py"
          className="font-mono"
          spellCheck={false}
          error={errorOf('runtime_config.cmd', problems.cmd)}
          hint="It gets the message on standard input and prints the answer."
        />
      ) : null}
      <Basics
        hasModel={isAgent(agent)}
        draft={draft}
        onChange={change}
        suggested={suggested}
        nameProblem={problems.name}
        errorOf={errorOf}
      />
      <FolderField label="Folder" typed={draft.folder} check={folder} onChange={(typed) => change({ folder: typed })} />
      {isAgent(agent) ? <PermissionChoice draft={draft} onChange={change} /> : null}
      {isElsewhere && create.error ? (
        <p role="alert" className="text-needs text-second">
          {reasonOf(create.error)}
        </p>
      ) : null}
      <footer className="flex items-center justify-end gap-2 border-line border-t pt-3">
        <p className="mr-auto text-faint text-time max-md:hidden">Its chat opens when it is ready.</p>
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" variant="ink" disabled={create.isPending || folder.isChecking}>
          Create
        </Button>
      </footer>
    </form>
  )
}

/** Refusals of the platform that name one of these stand under their field. */
const FIELDS_WITH_ERRORS = new Set(['name', 'role', 'model', 'runtime_config.cmd'])

interface BasicsProps {
  readonly hasModel: boolean
  readonly draft: LocalDraft
  readonly onChange: (more: Partial<LocalDraft>) => void
  readonly suggested: string
  readonly nameProblem: string | undefined
  readonly errorOf: (field: string, problem?: string) => string | undefined
}

function Basics({ hasModel, draft, onChange: change, suggested, nameProblem, errorOf }: BasicsProps) {
  const workspaces = useWorkspaces()
  return (
    <div className="grid grid-cols-2 gap-4 max-md:grid-cols-1">
      <Field
        label="Name"
        value={draft.name}
        onChange={({ target }) => change({ name: target.value })}
        placeholder={suggested}
        data-autofocus
        maxLength={100}
        error={errorOf('name', nameProblem)}
      />
      <Select
        label="Parent"
        value={draft.parentId}
        onChange={(parentId) => change({ parentId })}
        options={[{ id: '', title: 'None' }, ...[...workspaces.values()].map(({ id, name }) => ({ id, title: name }))]}
      />
      <Field
        label="Role, for people and other agents"
        value={draft.role}
        onChange={({ target }) => change({ role: target.value })}
        placeholder="Reads every change before it ships"
        error={errorOf('role')}
      />
      {hasModel ? (
        <Field
          label="Model"
          value={draft.model}
          onChange={({ target }) => change({ model: target.value })}
          placeholder="Default"
          spellCheck={false}
          error={errorOf('model')}
        />
      ) : null}
    </div>
  )
}

interface PermissionChoiceProps {
  readonly draft: LocalDraft
  readonly onChange: (more: Partial<LocalDraft>) => void
}

function PermissionChoice({ draft, onChange }: PermissionChoiceProps) {
  return (
    <div className="flex flex-col gap-2">
      <OptionCards
        label="What may it do?"
        options={PERMISSIONS}
        chosen={draft.permission}
        onChoose={(permission) => onChange({ permission: permission as Permission })}
        oneColumn
      />
      {draft.permission === 'allowed_tools' ? (
        <Field
          label="Allowed tools"
          value={draft.allowedTools}
          onChange={({ target }) => onChange({ allowedTools: target.value })}
          placeholder="Read, Edit, Bash(npm test:*)"
          spellCheck={false}
          className="font-mono"
          hint="With commas between them, as the agent names them."
        />
      ) : null}
    </div>
  )
}

const isAgent = ({ backend }: Pick<AgentChoice, 'backend'>): boolean => backend !== 'exec' && backend !== 'mock'

const toOption = ({ backend, title, version, about, remedy }: AgentChoice) => ({
  id: backend,
  title,
  about: remedy === undefined ? [version, about].filter(Boolean).join(' · ') : `${about} ${remedy.text}`,
})

function findProblems({ backend, name, cmd }: LocalDraft, taken: ReadonlySet<string>) {
  const isTaken = taken.has(name.trim())
  return {
    ...(isTaken && { name: `There is a workspace called ${name.trim()} already. Choose another name.` }),
    ...(backend === 'exec' && cmd.trim() === '' && { cmd: 'Write the command that answers messages.' }),
  } as { readonly name?: string; readonly cmd?: string }
}

interface KnownValues {
  readonly suggested: string
  readonly path: string | undefined
}

function toBody(draft: LocalDraft, { suggested, path }: KnownValues) {
  const { backend, name, role, cmd, model, parentId, permission, allowedTools } = draft
  const isModelAgent = isAgent(draft)
  const asks = isModelAgent && permission !== 'ask'
  const options = {
    ...(backend === 'exec' && { cmd: cmd.trim() }),
    ...(asks && permission === 'allowed_tools' && allowedTools.trim() && { allowed_tools: allowedTools.trim() }),
  }
  return {
    name: name.trim() || suggested,
    runtime: backend,
    ...(role.trim() && { role: role.trim() }),
    ...(isModelAgent && model.trim() && { model: model.trim() }),
    ...(parentId && { parent_id: parentId }),
    ...(path && { working_dir: path }),
    ...(asks && { permission }),
    ...(Object.keys(options).length > 0 && { runtime_config: options }),
  }
}
