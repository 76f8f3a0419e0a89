/** The settings of a workspace: its files, its folder, what it may do, what is always allowed, and its schedules. Each by role. */
import { useMay } from '../../api/queries.ts'
import type { TabProps } from '../tab.ts'
import { FileEditor } from './file-editor.tsx'
import { Rules } from './rules.tsx'
import { Schedules } from './schedules.tsx'
import { FolderSetting, PermissionSetting } from './work-settings.tsx'

export function Config({ workspace }: TabProps) {
  const may = useMay()
  const { id, name } = workspace
  return (
    <div className="@container flex min-h-full flex-1 flex-col">
      <div className="grid flex-1 @4xl:grid-cols-[minmax(0,1.4fr)_minmax(0,1fr)]">
        {may('file.read') ? (
          <div className="flex min-w-0 flex-col gap-4 p-5 max-md:p-3">
            <FileEditor
              workspaceId={id}
              path="config.yaml"
              kind="yaml"
              savedNote="Saved. The next turn uses it; no restart is needed."
            />
            <FileEditor
              workspaceId={id}
              path="system-prompt.md"
              kind="text"
              savedNote="Saved. Used from the next message on."
              placeholder={`Write here how ${name} works: what it owns, what it checks, what it never does.`}
            />
            <p className="text-faint text-time">
              Molecule adds the role, the list of peers and how to delegate. {name} does not have to be told.
            </p>
          </div>
        ) : null}
        <div className="flex min-w-0 flex-col gap-6 border-line bg-raised p-5 @max-4xl:border-t @4xl:border-l max-md:p-3">
          <FolderSetting workspace={workspace} />
          <PermissionSetting workspace={workspace} />
          {may('pending.read') ? <Rules workspace={workspace} /> : null}
          {may('schedule.read') ? <Schedules workspace={workspace} /> : null}
        </div>
      </div>
    </div>
  )
}
