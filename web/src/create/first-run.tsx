/** The page without any workspace: the agents of this machine, one click each. */
import { type ReactNode, useState } from 'react'
import { reasonOf } from '../api/client.ts'
import { useMay } from '../api/queries.ts'
import { Button } from '../ui/button.tsx'
import { copyText } from '../ui/copy-text.ts'
import { EmptyState, Loading } from '../ui/empty-state.tsx'
import { Field } from '../ui/field.tsx'
import { showToast } from '../ui/toasts.tsx'
import { type AgentChoice, MOCK, SHELL_COMMAND } from './agents.ts'
import { FolderField } from './folder-field.tsx'
import { lastPart } from './folders.ts'
import { useAgents } from './use-agents.ts'
import { useCreate } from './use-create.ts'
import { useFolder } from './use-folder.ts'

export function FirstRun() {
  const may = useMay()
  if (may('workspace.create')) return <ChooseFirst />
  return (
    <div className="flex h-full items-center justify-center">
      <EmptyState title="No workspace yet">An admin makes the first one; it will appear here.</EmptyState>
    </div>
  )
}

function ChooseFirst() {
  const { choices, error: agentsError, look, isLooking } = useAgents()
  const [typed, setTyped] = useState('')
  const folder = useFolder(typed)
  const create = useCreate()
  const start = (choice: AgentChoice, options: object = {}) => {
    const name = lastPart(folder.path ?? '') || choice.name
    const working_dir = folder.path
    create.mutate({ name, runtime: choice.backend, ...(working_dir && { working_dir }), ...options })
  }
  const isBusy = create.isPending || folder.isChecking || folder.problem !== undefined
  const error = create.error ?? agentsError
  // Rows that came later would push the others away under the pointer.
  const isLooked = choices !== undefined || agentsError !== null
  return (
    <div className="h-full overflow-y-auto px-4 py-10 max-md:py-6">
      <div className="mx-auto flex max-w-[560px] flex-col gap-6">
        <header>
          <h1 className="font-[650] text-greeting">Welcome. Who should start?</h1>
          <p className="text-soft">
            {choices?.length === 0
              ? 'No agent was found on this machine. The mock answers until one is installed.'
              : 'These agents are on this machine. Pick one and say hello.'}
          </p>
        </header>
        <FolderField label="Folder to work in" typed={typed} check={folder} onChange={setTyped} />
        {error === null ? null : (
          <p role="alert" className="text-needs text-second">
            {reasonOf(error)}
          </p>
        )}
        <ul className="rounded-card border border-line bg-surface px-4 shadow-card">
          {isLooked ? null : <Loading />}
          {choices?.map((choice) => (
            <ChoiceRow key={choice.backend} choice={choice}>
              {choice.remedy === undefined ? (
                <StartButton choice={choice} disabled={isBusy} onClick={() => start(choice)} />
              ) : (
                <RemedyButtons remedy={choice.remedy} onLook={look} isLooking={isLooking} />
              )}
            </ChoiceRow>
          ))}
          {isLooked ? (
            <>
              <CommandRow disabled={isBusy} onStart={(cmd) => start(SHELL_COMMAND, { runtime_config: { cmd } })} />
              <ChoiceRow choice={MOCK}>
                <StartButton choice={MOCK} disabled={isBusy} onClick={() => start(MOCK)} />
              </ChoiceRow>
            </>
          ) : null}
        </ul>
      </div>
    </div>
  )
}

function ChoiceRow({ choice, children }: { readonly choice: AgentChoice; readonly children: ReactNode }) {
  const { mark, title, version, about, remedy } = choice
  return (
    <li className="flex items-center gap-4 border-line border-t py-3 first:border-t-0 max-md:flex-wrap">
      <span
        aria-hidden="true"
        className="flex size-8 shrink-0 items-center justify-center rounded-button border border-line bg-raised font-[600] font-mono text-chip text-soft"
      >
        {mark}
      </span>
      <div className="min-w-0 flex-1">
        <p className="font-[600]">
          {title} {version ? <span className="ml-1 font-[400] font-mono text-faint text-time">{version}</span> : null}
        </p>
        <p className="text-second text-soft">
          {about} {remedy?.text}
        </p>
      </div>
      {children}
    </li>
  )
}

interface StartButtonProps {
  readonly choice: AgentChoice
  readonly disabled: boolean
  readonly onClick: () => void
}

function StartButton({ choice, disabled, onClick }: StartButtonProps) {
  return (
    <Button disabled={disabled} onClick={onClick} aria-label={`Start ${choice.title}`}>
      Start
    </Button>
  )
}

interface RemedyButtonsProps {
  readonly remedy: NonNullable<AgentChoice['remedy']>
  readonly onLook: () => void
  readonly isLooking: boolean
}

function RemedyButtons({ remedy: { command }, onLook, isLooking }: RemedyButtonsProps) {
  const copy = async () => {
    if (await copyText(command ?? '')) showToast(`Copied: ${command}`)
  }
  return (
    <div className="flex gap-2 max-md:w-full max-md:pl-12">
      {command === undefined ? null : <Button onClick={copy}>Copy</Button>}
      <Button disabled={isLooking} onClick={onLook}>
        Check again
      </Button>
    </div>
  )
}

function CommandRow({ disabled, onStart }: { readonly disabled: boolean; readonly onStart: (cmd: string) => void }) {
  const [cmd, setCmd] = useState<string>()
  return (
    <>
      <ChoiceRow choice={SHELL_COMMAND}>
        {cmd === undefined ? (
          <Button disabled={disabled} onClick={() => setCmd('')} aria-label="Choose a shell command">
            Choose
          </Button>
        ) : null}
      </ChoiceRow>
      {cmd === undefined ? null : (
        <li className="pb-3 pl-12 max-md:pl-0">
          <form
            className="flex items-start gap-2"
            onSubmit={(event) => {
              event.preventDefault()
              if (cmd.trim() !== '') onStart(cmd.trim())
            }}
          >
            <div className="min-w-0 flex-1">
              <Field
                label="Command"
                autoFocus
                value={cmd}
                onChange={({ target }) => setCmd(target.value)}
                placeholder="python handler.py"
                spellCheck={false}
                className="font-mono"
                hint="It gets the message on standard input."
              />
            </div>
            <Button type="submit" className="mt-6 h-9" disabled={disabled || cmd.trim() === ''}>
              Start
            </Button>
          </form>
        </li>
      )}
    </>
  )
}
