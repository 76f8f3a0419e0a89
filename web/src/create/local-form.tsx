/** The form for a workspace whose agent runs on the platform's machine. What is written stays until it is made or cancelled. */
import { type FormEvent, useId, useState } from 'react'
import { MoleculeError } from '../../../src/errors.ts'
import { reasonOf } from '../api/client.ts'
import { useWorkspaces } from '../api/queries.ts'
import { Button } from '../ui/button.tsx'
import { FormFooter } from '../ui/dialog.tsx'
import { Loading } from '../ui/empty-state.tsx'
import { Field } from '../ui/field.tsx'
import { OptionCard } from '../ui/option-cards.tsx'
import { Select } from '../ui/select.tsx'
import { isTouch } from '../ui/touch.ts'
import { useDraft } from '../ui/use-draft.ts'
import { type AgentChoice, freeName, MOCK } from './agents.ts'
import { FolderField } from './folder-field.tsx'
import { lastPart } from './folders.ts'
import { EMPTY_DRAFT, findProblems, type LocalDraft, toBody } from './local-draft.ts'
import { PermissionChoice } from './permission-choice.tsx'
import { canAsk, fieldsOf, groupRuntimes, hasModel, type RuntimeGroups } from './runtimes.ts'
import { useAgents } from './use-agents.ts'
import { openChat, useCreate } from './use-create.ts'
import { useFolder } from './use-folder.ts'

interface LocalFormProps {
  readonly onClose: () => void
}

/** The form comes when the machine was looked at, so that no runtime moves while a person chooses. */
export function LocalForm({ onClose }: LocalFormProps) {
  const { found, error } = useAgents()
  if (found === undefined && error === null) return <Loading />
  return <FilledForm onClose={onClose} />
}

function FilledForm({ onClose }: LocalFormProps) {
  const { groups, problem: agentsProblem } = useGroups()
  const workspaces = useWorkspaces()
  const { value: draft, change, forget } = useDraft<LocalDraft>('new.local', EMPTY_DRAFT)
  const [isTried, setTried] = useState(false)
  const folder = useFolder(draft.folder)
  const create = useCreate((workspace) => {
    forget()
    openChat(workspace)
  })
  const offered = [...groups.here, ...groups.more]
  const agent = offered.find(({ backend }) => backend === draft.backend) ?? groups.here[0] ?? MOCK
  const taken = new Set([...workspaces.values()].map(({ name }) => name))
  const suggested = freeName(lastPart(folder.path ?? '') || agent.name, taken)
  const chosen = { ...draft, backend: agent.backend }
  const problems = findProblems(chosen, taken)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setTried(true)
    const isWrong = Object.keys(problems).length > 0 || folder.problem !== undefined || folder.isChecking
    if (!isWrong) create.mutate(toBody(chosen, { suggested, path: folder.path }))
  }
  const cancel = () => {
    forget()
    onClose()
  }
  const refused = create.error instanceof MoleculeError ? String(create.error.details?.['path']) : ''
  const errorOf = (field: string) =>
    (isTried ? problems[field] : undefined) ?? (refused === field && create.error ? reasonOf(create.error) : undefined)
  const isElsewhere = create.error !== null && !isShownAt(refused, agent.backend)
  return (
    <form onSubmit={submit} className="flex flex-col gap-5">
      <RuntimeChoice groups={groups} chosen={agent.backend} onChoose={(backend) => change({ backend })} />
      {agentsProblem === undefined ? null : <p className="text-needs text-second">{agentsProblem}</p>}
      <RuntimeFields draft={chosen} onChange={change} errorOf={errorOf} />
      <Basics draft={chosen} onChange={change} suggested={suggested} errorOf={errorOf} />
      <FolderField label="Folder" typed={draft.folder} check={folder} onChange={(typed) => change({ folder: typed })} />
      {canAsk(agent.backend) ? <PermissionChoice {...draft} onChange={change} /> : null}
      {isElsewhere && create.error ? (
        <p role="alert" className="text-needs text-second">
          {reasonOf(create.error)}
        </p>
      ) : null}
      <FormFooter note="Its chat opens when it is ready.">
        <Button onClick={cancel}>Cancel</Button>
        <Button type="submit" variant="ink" disabled={create.isPending || folder.isChecking}>
          Create
        </Button>
      </FormFooter>
    </form>
  )
}

/** The groups and their order stay as they were at first; only what is said of a runtime changes. */
function useGroups(): { readonly groups: RuntimeGroups; readonly problem: string | undefined } {
  const { found, error } = useAgents()
  const [first] = useState(() => groupRuntimes(found))
  const now = groupRuntimes(found)
  const known = new Map([...now.here, ...now.more].map((choice) => [choice.backend, choice]))
  const update = (choices: readonly AgentChoice[]) => choices.map((choice) => known.get(choice.backend) ?? choice)
  return {
    groups: { here: update(first.here), more: update(first.more) },
    problem: error === null ? undefined : reasonOf(error),
  }
}

interface RuntimeChoiceProps {
  readonly groups: RuntimeGroups
  readonly chosen: string
  readonly onChoose: (backend: string) => void
}

function RuntimeChoice({ groups: { here, more }, chosen, onChoose }: RuntimeChoiceProps) {
  const name = useId()
  // Opened for a choice that was made earlier; then only the person opens and closes it.
  const [isOpen, setOpen] = useState(() => more.some(({ backend }) => backend === chosen))
  const cards = (choices: readonly AgentChoice[]) => (
    <div className="grid grid-cols-2 gap-2 max-md:grid-cols-1">
      {choices.map((choice) => (
        <OptionCard
          key={choice.backend}
          option={toOption(choice)}
          className="min-h-19"
          name={name}
          chosen={chosen}
          onChoose={onChoose}
        />
      ))}
    </div>
  )
  return (
    <fieldset>
      <legend className="mb-1 font-[550] text-second">Runtime</legend>
      {cards(here)}
      <details open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)} className="mt-2">
        <summary className="w-fit rounded-tag py-1 font-[550] text-accent text-second max-md:min-h-10">
          {more.length} more: other kinds of agents, and those not found here
        </summary>
        <div className="mt-1">{cards(more)}</div>
      </details>
    </fieldset>
  )
}

const toOption = ({ backend, title, version, about, remedy }: AgentChoice) => ({
  id: backend,
  title,
  about: remedy === undefined ? [version, about].filter(Boolean).join(' · ') : `${about} ${remedy.text}`,
})

interface PartProps {
  readonly draft: LocalDraft
  readonly onChange: (more: Partial<LocalDraft>) => void
  readonly errorOf: (field: string) => string | undefined
}

function RuntimeFields({ draft, onChange, errorOf }: PartProps) {
  return fieldsOf(draft.backend).map(({ key, label, placeholder, hint }) => (
    <Field
      key={`${draft.backend} ${key}`}
      label={label}
      value={draft.options[key] ?? ''}
      onChange={({ target }) => onChange({ options: { ...draft.options, [key]: target.value } })}
      placeholder={placeholder}
      className="font-mono"
      spellCheck={false}
      error={errorOf(`runtime_config.${key}`)}
      hint={hint}
    />
  ))
}

/** Refusals of the platform that name one of these stand under their field. */
const isShownAt = (field: string, backend: string): boolean =>
  ['name', 'role', 'model', ...fieldsOf(backend).map(({ key }) => `runtime_config.${key}`)].includes(field)

function Basics({ draft, onChange: change, suggested, errorOf }: PartProps & { readonly suggested: string }) {
  const workspaces = useWorkspaces()
  return (
    <div className="grid grid-cols-2 gap-4 max-md:grid-cols-1">
      <Field
        label="Name"
        value={draft.name}
        onChange={({ target }) => change({ name: target.value })}
        placeholder={suggested}
        // For a form that comes with the dialog, and for one that comes after it, when the machine was looked at. On a phone
        // the focus would scroll away the runtimes above.
        data-autofocus={isTouch() ? undefined : true}
        autoFocus={!isTouch()}
        maxLength={100}
        error={errorOf('name')}
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
      {hasModel(draft.backend) ? (
        <Field
          label="Model"
          value={draft.model}
          onChange={({ target }) => change({ model: target.value })}
          placeholder={draft.backend === 'openai' ? 'llama3.2' : 'Default'}
          spellCheck={false}
          error={errorOf('model')}
        />
      ) : null}
    </div>
  )
}
