/** The dialogs of a workspace's menu: rename, move below another one, delete. */
import { type FormEvent, useId, useState } from 'react'
import type { WorkspaceSummary } from '../../../src/client/views.ts'
import { changeWorkspace } from '../../../src/client/workspaces.ts'
import { client, reasonOf } from '../api/client.ts'
import { useWorkspaces } from '../api/queries.ts'
import { goTo } from '../route/route.ts'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Field } from '../ui/field.tsx'
import { Select } from '../ui/select.tsx'
import { countText } from '../ui/text/times.ts'
import { showToast } from '../ui/toasts.tsx'
import { nest } from './changes.ts'
import { descendantsOf } from './families.ts'

interface ActionDialogProps {
  readonly workspace: WorkspaceSummary
  readonly onClose: () => void
}

export function RenameDialog({ workspace, onClose }: ActionDialogProps) {
  const [name, setName] = useState(workspace.name)
  const [problem, setProblem] = useState<string>()
  const formId = useId()
  const save = (event: FormEvent) => {
    event.preventDefault()
    changeWorkspace(client, workspace.id, { name: name.trim(), allow_duplicate: false }).then(
      onClose,
      (error: unknown) => setProblem(reasonOf(error)),
    )
  }
  return (
    <Dialog
      title={`Rename ${workspace.name}`}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button variant="ink" type="submit" form={formId} disabled={name.trim() === ''}>
            Rename
          </Button>
        </>
      }
    >
      <form id={formId} onSubmit={save}>
        <Field label="Name" value={name} error={problem} autoFocus onChange={({ target }) => setName(target.value)} />
      </form>
    </Dialog>
  )
}

export function MoveDialog({ workspace, onClose }: ActionDialogProps) {
  const workspaces = useWorkspaces()
  const [parentId, setParentId] = useState(workspace.parent_id ?? '')
  const below = new Set(descendantsOf(workspace.id, workspaces).map((each) => each.id))
  const parents = [...workspaces.values()]
    .filter((each) => each.id !== workspace.id && !below.has(each.id))
    .sort((a, b) => a.name.localeCompare(b.name))
  const move = () => {
    nest(workspace, parentId === '' ? null : parentId)
    onClose()
  }
  return (
    <Dialog
      title={`Move ${workspace.name}`}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button variant="ink" onClick={move}>
            Move
          </Button>
        </>
      }
    >
      <Select
        label="Below"
        value={parentId}
        onChange={setParentId}
        options={[{ id: '', title: 'No parent' }, ...parents.map(({ id, name }) => ({ id, title: name }))]}
      />
      <p className="mt-1 text-faint text-time">A workspace may talk to its parent, its children and its siblings.</p>
    </Dialog>
  )
}

export function DeleteDialog({ workspace, onClose }: ActionDialogProps) {
  const below = descendantsOf(workspace.id, useWorkspaces())
  const [problem, setProblem] = useState<string>()
  const waiting = [workspace, ...below].reduce((sum, { queue_depth: depth = 0 }) => sum + depth, 0)
  const remove = () => {
    const { id } = workspace
    client.call('DELETE /workspaces/{id}', { id, confirm: id, cascade: below.length > 0 }).then(
      ({ deleted }) => {
        goTo({})
        onClose()
        showToast(deleted.length === 1 ? `${workspace.name} is deleted.` : `${deleted.length} workspaces are deleted.`)
      },
      (error: unknown) => setProblem(reasonOf(error)),
    )
  }
  const what = below.length === 0 ? workspace.name : `${countText(below.length + 1)} workspaces`
  return (
    <Dialog
      title={`Delete ${workspace.name}?`}
      onClose={onClose}
      actions={
        <>
          <Button onClick={remove}>Delete {what}</Button>
          <Button variant="ink" onClick={onClose}>
            Keep
          </Button>
        </>
      }
    >
      <p className="text-soft">
        Its messages, its memory and its settings are removed. This cannot be undone.
        {waiting > 0
          ? ` ${countText(waiting)} ${waiting === 1 ? 'message waits' : 'messages wait'} for an answer.`
          : ''}
      </p>
      {below.length > 0 ? (
        <p className="mt-2 text-soft">
          Also deleted, because they are below it: <strong className="text-ink">{namesOf(below)}</strong>
        </p>
      ) : null}
      {problem === undefined ? null : (
        <p role="alert" className="mt-3 rounded-button bg-needs-soft px-3 py-2 text-needs text-second">
          {problem}
        </p>
      )}
    </Dialog>
  )
}

const NAMES_MAX = 8

export function namesOf(workspaces: readonly WorkspaceSummary[]): string {
  const names = workspaces.slice(0, NAMES_MAX).map(({ name }) => name)
  const more = workspaces.length - names.length
  return more > 0 ? `${names.join(', ')} and ${countText(more)} more` : names.join(', ')
}
