/** Three steps for an agent that runs on another machine: name it, run a command there, see it arrive. */
import { type FormEvent, type ReactNode, useState } from 'react'
import type { CreatedWorkspaceView } from '../../../src/client/workspaces.ts'
import { reasonOf } from '../api/client.ts'
import { useWorkspace, useWorkspaces } from '../api/queries.ts'
import { goTo } from '../route/route.ts'
import { Button } from '../ui/button.tsx'
import { FormFooter } from '../ui/dialog.tsx'
import { Dot } from '../ui/dot.tsx'
import { Field } from '../ui/field.tsx'
import { Select } from '../ui/select.tsx'
import { CodeBlock } from '../ui/text/code-block.tsx'
import { RunningTime } from '../ui/text/time.tsx'
import { keepForm, readForm, useDraft } from '../ui/use-draft.ts'
import { connectCommand, urlOfCommand } from './connect-command.ts'
import { ConnectNotes } from './connect-notes.tsx'
import { useCreate } from './use-create.ts'

interface MadeBridge {
  readonly id: string
  readonly name: string
  readonly token: string
  /** The address of the platform for another machine. */
  readonly url: string
  readonly madeAt: string
}

const DRAFT = 'new.connect'

export const hasConnectDraft = (): boolean => readForm(DRAFT) !== undefined

export function ConnectForm({ onClose }: { readonly onClose: () => void }) {
  const [made, setMade] = useState<MadeBridge>()
  const close = () => {
    keepForm(DRAFT, undefined)
    onClose()
  }
  return (
    <div className="flex flex-col gap-5">
      <Step number={1} title="Name it">
        {made === undefined ? <NameForm onMade={setMade} /> : <p className="text-soft">{made.name}</p>}
      </Step>
      {made === undefined ? null : <ConnectSteps made={made} />}
      <FormFooter note="Works with claude-code, codex, gemini, opencode, exec and others.">
        <Button onClick={close}>{made === undefined ? 'Cancel' : 'Close'}</Button>
      </FormFooter>
    </div>
  )
}

function Step({
  number,
  title,
  children,
}: {
  readonly number: number
  readonly title: string
  readonly children: ReactNode
}) {
  return (
    <section className="flex gap-3">
      <span
        aria-hidden="true"
        className="flex size-6 shrink-0 items-center justify-center rounded-full border border-line bg-raised font-[600] text-soft text-time"
      >
        {number}
      </span>
      <div className="min-w-0 flex-1">
        <h3 className="mb-1 font-[600]">{title}</h3>
        {children}
      </div>
    </section>
  )
}

function NameForm({ onMade }: { readonly onMade: (made: MadeBridge) => void }) {
  const workspaces = useWorkspaces()
  const { value, change, forget } = useDraft(DRAFT, { name: '', parentId: '' })
  const { name, parentId } = value
  const [problem, setProblem] = useState<string>()
  const create = useCreate((workspace) => {
    forget()
    onMade(toBridge(workspace))
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const isTaken = [...workspaces.values()].some((one) => one.name === name.trim())
    if (name.trim() === '') setProblem('Write a name, such as "Laptop of Mira".')
    else if (isTaken) setProblem(`There is a workspace called ${name.trim()} already. Choose another name.`)
    else create.mutate({ name: name.trim(), runtime: 'external', ...(parentId && { parent_id: parentId }) })
  }
  return (
    <form onSubmit={submit} className="flex items-start gap-2 max-md:flex-col max-md:items-stretch">
      <div className="min-w-0 flex-1">
        <Field
          label="Name"
          value={name}
          onChange={({ target }) => {
            change({ name: target.value })
            setProblem(undefined)
          }}
          placeholder="Laptop of Mira"
          data-autofocus
          maxLength={100}
          error={problem ?? (create.error ? reasonOf(create.error) : undefined)}
        />
      </div>
      <div className="min-w-0 flex-1">
        <Select
          label="Parent"
          value={parentId}
          onChange={(next) => change({ parentId: next })}
          options={[
            { id: '', title: 'None' },
            ...[...workspaces.values()].map((one) => ({ id: one.id, title: one.name })),
          ]}
        />
      </div>
      <Button type="submit" variant="ink" className="mt-6 h-9 max-md:mt-0" disabled={create.isPending}>
        Create
      </Button>
    </form>
  )
}

function toBridge({ id, name, connect = '', auth_token: token = '' }: CreatedWorkspaceView): MadeBridge {
  const url = urlOfCommand(connect) ?? location.origin
  return { id, name, token, url, madeAt: new Date().toISOString() }
}

function ConnectSteps({ made }: { readonly made: MadeBridge }) {
  const isOnline = useWorkspace(made.id)?.status === 'online'
  return (
    <>
      <Step number={2} title="Run this on the other machine">
        <CodeBlock code={connectCommand(made.id, made)} />
        <div className="flex flex-col gap-2">
          <ConnectNotes url={made.url} />
          <p className="text-faint text-time">
            The token is shown only now. It speaks for this workspace alone, and you can replace it under Details. With
            another agent than Claude Code, add <code className="whitespace-nowrap font-mono">--backend codex</code>.
          </p>
        </div>
      </Step>
      <Step number={3} title="See it arrive">
        <div
          role="status"
          className="flex items-center gap-3 rounded-button border border-edge border-dashed px-4 py-3 text-soft"
        >
          <Dot state={isOnline ? 'online' : 'offline'} />
          <span className="flex-1">{isOnline ? `${made.name} is online.` : 'Waiting for it to connect…'}</span>
          {isOnline ? (
            <Button variant="ink" onClick={() => goTo({ workspaceId: made.id, tab: 'chat' })}>
              Say hello
            </Button>
          ) : (
            <RunningTime since={made.madeAt} />
          )}
        </div>
        <p className="mt-1 text-faint text-time">
          You may close this. Messages sent to it now wait, at most 24 hours, and are answered when it connects.
        </p>
      </Step>
    </>
  )
}
