/** The field for a folder on the platform's machine: typed, or chosen from a list. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { FoldersView } from '../../../src/client/views.ts'
import { client, reasonOf } from '../api/client.ts'
import { Button } from '../ui/button.tsx'
import { Chip } from '../ui/chip.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { EmptyState, Loading } from '../ui/empty-state.tsx'
import { Field } from '../ui/field.tsx'
import { shortPath } from './folders.ts'
import type { FolderCheck } from './use-folder.ts'

export interface FolderFieldProps {
  readonly label: string
  readonly typed: string
  readonly check: FolderCheck
  readonly onChange: (typed: string) => void
  readonly hint?: string
}

const NEW_FOLDER = 'Leave it empty for a new folder. You can change it later, under Config.'

export function FolderField({ label, typed, check, onChange, hint = NEW_FOLDER }: FolderFieldProps) {
  const [isPicking, setPicking] = useState(false)
  const { suggestion } = check
  const start = check.problem === undefined ? typed.trim() || undefined : undefined
  return (
    <div className="flex flex-col gap-1">
      <div className="flex items-start gap-2">
        <div className="min-w-0 flex-1">
          <Field
            label={label}
            value={typed}
            onChange={({ target }) => onChange(target.value)}
            placeholder="A new folder"
            spellCheck={false}
            autoComplete="off"
            className="font-mono placeholder:font-sans"
            error={check.problem}
            hint={hint}
          />
        </div>
        <Button className="mt-6 h-9" onClick={() => setPicking(true)}>
          Choose…
        </Button>
      </div>
      {suggestion === undefined ? null : (
        <p className="text-second">
          Did you mean{' '}
          <button type="button" className="font-mono text-accent underline" onClick={() => onChange(suggestion)}>
            {suggestion}
          </button>
          ?
        </p>
      )}
      {isPicking ? <FolderPicker start={start} onClose={() => setPicking(false)} onChoose={onChange} /> : null}
    </div>
  )
}

interface FolderPickerProps {
  readonly start: string | undefined
  readonly onClose: () => void
  readonly onChoose: (path: string) => void
}

function FolderPicker({ start, onClose, onChoose }: FolderPickerProps) {
  const [path, setPath] = useState(start)
  const { data, error } = useQuery({
    queryKey: ['folders', path ?? ''],
    queryFn: () => client.call('GET /folders', { path }),
    retry: false,
  })
  const choose = (chosen: string) => {
    onChoose(shortPath(chosen, data?.home))
    onClose()
  }
  const actions = (
    <>
      <Button onClick={onClose}>Cancel</Button>
      <Button variant="ink" disabled={data === undefined} onClick={() => data && choose(data.path)}>
        Use this folder
      </Button>
    </>
  )
  return (
    <Dialog title="Choose a folder" onClose={onClose} actions={actions}>
      <p className="mb-2 flex min-h-8 flex-wrap items-center gap-2 break-all font-mono text-second text-soft">
        {data === undefined ? path : shortPath(data.path, data.home)}
        {data?.is_git ? <Chip>git</Chip> : null}
      </p>
      {error === null ? null : (
        <p role="alert" className="text-needs text-second">
          {reasonOf(error)}
        </p>
      )}
      {data === undefined && error === null ? <Loading /> : null}
      {data === undefined ? null : <FolderList folders={data} onOpen={setPath} />}
    </Dialog>
  )
}

type FolderListProps = {
  readonly folders: FoldersView
  readonly onOpen: (path: string) => void
}

function FolderList({ folders: { parent, folders, truncated }, onOpen }: FolderListProps) {
  const rows = [
    ...(parent === null ? [] : [{ name: 'The folder above', path: parent, is_git: false, isParent: true }]),
    ...folders.map((folder) => ({ ...folder, isParent: false })),
  ]
  return (
    <>
      <ul className="flex max-h-[320px] flex-col overflow-y-auto rounded-box border border-line">
        {rows.map(({ name, path, is_git: isGit, isParent }) => (
          <li key={path} className="border-line border-t first:border-t-0">
            <button
              type="button"
              onClick={() => onOpen(path)}
              className="focus-inside flex min-h-9 w-full items-center gap-2 px-3 py-1 text-left text-second hover:bg-raised max-md:min-h-11"
            >
              <span className={isParent ? 'text-soft' : 'min-w-0 truncate font-mono'}>
                {isParent ? `↑ ${name}` : name}
              </span>
              {isGit ? <Chip className="ml-auto">git</Chip> : null}
            </button>
          </li>
        ))}
      </ul>
      {folders.length === 0 ? <EmptyState title="No folder in here" /> : null}
      {truncated ? <p className="mt-2 text-faint text-time">There are more folders; type the path instead.</p> : null}
    </>
  )
}
