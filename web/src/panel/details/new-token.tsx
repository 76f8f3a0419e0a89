/** The dialog "New token" for one workspace. */
import { type FormEvent, useId, useState } from 'react'
import type { TokenSecretView, WorkspaceSummary } from '../../../../src/client/views.ts'
import { client, reasonOf } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Field } from '../../ui/field.tsx'
import { Select } from '../../ui/select.tsx'
import { useDraft } from '../../ui/use-draft.ts'

export interface NewTokenDialogProps {
  readonly workspace: WorkspaceSummary
  readonly onClose: () => void
  readonly onMade: (secret: TokenSecretView) => void
}

type Role = 'caller' | 'workspace'

const ROLES: readonly { readonly id: Role; readonly title: string; readonly hint: string }[] = [
  {
    id: 'caller',
    title: 'A program that sends messages',
    hint: 'It sends to this workspace and reads its own answers.',
  },
  {
    id: 'workspace',
    title: 'A bridge that runs the agent',
    hint: 'It takes the messages of this workspace: molecule connect.',
  },
]

const EXPIRIES = [
  { id: '', title: 'never' },
  { id: '720h', title: 'after 30 days' },
  { id: '8760h', title: 'after a year' },
]

export function NewTokenDialog({ workspace, onClose, onMade }: NewTokenDialogProps) {
  const form = useId()
  const usual: Role = workspace.runtime === 'external' ? 'workspace' : 'caller'
  const { value, change, forget } = useDraft(`${workspace.id}.details.token`, { name: '', role: usual, expiry: '' })
  const { name, role, expiry } = value
  const [problem, setProblem] = useState<string>()
  const make = async (event: FormEvent) => {
    event.preventDefault()
    if (name.trim() === '') return setProblem('Write who uses it: “Nightly build”.')
    const reach = role === 'workspace' ? { workspace_id: workspace.id } : { workspaces: [workspace.id] }
    try {
      const body = { name: name.trim(), role, ...reach, ...(expiry !== '' && { expires_in: expiry }) }
      const made = await client.call('POST /tokens', { body })
      forget()
      onMade(made)
    } catch (thrown) {
      setProblem(reasonOf(thrown))
    }
  }
  const cancel = () => {
    forget()
    onClose()
  }
  return (
    <Dialog
      title={`New token for ${workspace.name}`}
      onClose={onClose}
      actions={
        <>
          <Button onClick={cancel}>Cancel</Button>
          <Button variant="ink" type="submit" form={form}>
            Make it
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={make} className="flex flex-col gap-4">
        <Field label="Name" value={name} onChange={(event) => change({ name: event.target.value })} error={problem} />
        <fieldset className="flex flex-col gap-2">
          <legend className="pb-1 font-[550] text-second">For</legend>
          {ROLES.map(({ id, title, hint }) => (
            <label key={id} className="flex items-start gap-2 max-md:min-h-10">
              <input
                type="radio"
                name="role"
                checked={role === id}
                onChange={() => change({ role: id })}
                className="mt-1 accent-accent"
              />
              <span>
                {title}
                <span className="block text-faint text-time">{hint}</span>
              </span>
            </label>
          ))}
        </fieldset>
        <Select label="It ends" value={expiry} onChange={(next) => change({ expiry: next })} options={EXPIRIES} />
      </form>
    </Dialog>
  )
}
