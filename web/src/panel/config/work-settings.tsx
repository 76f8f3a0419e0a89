/** Where a workspace works and what it may do there. A change counts from the next turn on. */
import { useState } from 'react'
import type { WorkspaceSummary } from '../../../../src/client/views.ts'
import { changeWorkspace, type WorkspaceChangeBody } from '../../../../src/client/workspaces.ts'
import { client, reasonOf } from '../../api/client.ts'
import { useMay } from '../../api/queries.ts'
import { FolderField } from '../../create/folder-field.tsx'
import { PermissionChoice } from '../../create/permission-choice.tsx'
import { PERMISSION_SENTENCES, permissionOf } from '../../create/permission-sentences.ts'
import { useFolder } from '../../create/use-folder.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Section } from '../../ui/section.tsx'
import { showToast } from '../../ui/toasts.tsx'
import { useDraft } from '../../ui/use-draft.ts'
import type { TabProps } from '../tab.ts'

export function FolderSetting({ workspace }: TabProps) {
  const may = useMay()
  const [isChanging, setChanging] = useState(false)
  if (!workspace.working_dir || workspace.runtime === 'external') return null
  const change = may('workspace.change') ? (
    <Button onClick={() => setChanging(true)}>
      Change…<span className="sr-only"> the folder</span>
    </Button>
  ) : undefined
  return (
    <Section title="Folder" action={change}>
      <p className="break-words font-mono text-second">{workspace.working_dir}</p>
      <p className="text-faint text-time">{workspace.name} works in this folder.</p>
      {isChanging ? <FolderDialog workspace={workspace} onClose={() => setChanging(false)} /> : null}
    </Section>
  )
}

interface SettingDialogProps {
  readonly workspace: WorkspaceSummary
  readonly onClose: () => void
}

function FolderDialog({ workspace, onClose }: SettingDialogProps) {
  const { value, change, forget } = useDraft(`${workspace.id}.config.folder`, { typed: workspace.working_dir ?? '' })
  const folder = useFolder(value.typed)
  const { problem, isBusy, save, forgetProblem } = useSave(workspace, () => {
    forget()
    onClose()
    showToast(`${workspace.name} works in ${folder.path} from its next turn on.`)
  })
  const isSame = folder.path === undefined || folder.path === workspace.working_dir
  return (
    <Dialog
      title={`Folder of ${workspace.name}`}
      onClose={onClose}
      actions={
        <>
          <Button
            onClick={() => {
              forget()
              onClose()
            }}
          >
            Cancel
          </Button>
          <Button
            variant="ink"
            disabled={isBusy || isSame || folder.problem !== undefined}
            onClick={() => save({ working_dir: folder.path })}
          >
            Use this folder
          </Button>
        </>
      }
    >
      <FolderField
        label="Folder"
        typed={value.typed}
        check={problem === undefined ? folder : { ...folder, problem }}
        onChange={(typed) => {
          change({ typed })
          forgetProblem()
        }}
        hint="It works there from its next turn on. Nothing is moved."
      />
    </Dialog>
  )
}

export function PermissionSetting({ workspace }: TabProps) {
  const may = useMay()
  const [isChanging, setChanging] = useState(false)
  const permission = permissionOf(workspace)
  if (permission === undefined) return null
  const [title, sentence] = PERMISSION_SENTENCES[permission]
  const change = may('workspace.change') ? (
    <Button onClick={() => setChanging(true)}>
      Change…<span className="sr-only"> what it may do</span>
    </Button>
  ) : undefined
  return (
    <Section title="What it may do" action={change}>
      <p className="text-second first-letter:uppercase">{title}.</p>
      <p className="text-faint text-time">{sentence}</p>
      {isChanging ? <PermissionDialog workspace={workspace} onClose={() => setChanging(false)} /> : null}
    </Section>
  )
}

function PermissionDialog({ workspace, onClose }: SettingDialogProps) {
  const { runtime_config: config = {} } = workspace
  const { value, change, forget } = useDraft(`${workspace.id}.config.permission`, {
    permission: permissionOf(workspace) ?? 'ask',
    allowedTools: String(config['allowed_tools'] ?? ''),
  })
  const { problem, isBusy, save } = useSave(workspace, () => {
    forget()
    onClose()
    const [title] = PERMISSION_SENTENCES[value.permission]
    showToast(`${workspace.name} ${title} from its next turn on.`)
  })
  const tools =
    value.permission === 'allowed_tools' ? { runtime_config: { allowed_tools: value.allowedTools.trim() } } : {}
  return (
    <Dialog
      title={`What may ${workspace.name} do?`}
      onClose={onClose}
      actions={
        <>
          <Button
            onClick={() => {
              forget()
              onClose()
            }}
          >
            Cancel
          </Button>
          <Button variant="ink" disabled={isBusy} onClick={() => save({ permission: value.permission, ...tools })}>
            Save
          </Button>
        </>
      }
    >
      <PermissionChoice {...value} onChange={change} />
      {problem === undefined ? null : (
        <p role="alert" className="mt-3 text-needs text-second">
          {problem}
        </p>
      )}
    </Dialog>
  )
}

function useSave({ id }: WorkspaceSummary, onSaved: () => void) {
  const [problem, setProblem] = useState<string>()
  const [isBusy, setBusy] = useState(false)
  const save = (body: WorkspaceChangeBody) => {
    setBusy(true)
    changeWorkspace(client, id, body).then(onSaved, (error: unknown) => {
      setBusy(false)
      setProblem(reasonOf(error))
    })
  }
  return { problem, isBusy, save, forgetProblem: () => setProblem(undefined) }
}
