/**
 * One file of a workspace: edited, checked while it is edited, and saved. A file that changed on the disk meanwhile is
 * not overwritten: the notice offers both versions.
 */
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useEffect, useState } from 'react'
import type { FileProblem } from '../../../../src/client/platform-failure.ts'
import { readVersionedFile, type VersionedFile } from '../../../../src/client/workspaces.ts'
import { MoleculeError } from '../../../../src/errors.ts'
import { client, reasonOf } from '../../api/client.ts'
import { keys, queryClient } from '../../api/queries.ts'
import { asSentence } from '../../api/sentence.ts'
import { Button } from '../../ui/button.tsx'
import { classNames } from '../../ui/class-names.ts'
import { Loading } from '../../ui/empty-state.tsx'
import { ReadFailure } from '../../ui/section.tsx'
import { keepForm, readForm } from '../../ui/use-draft.ts'
import { Editor } from './editor.tsx'

/** How often the file is compared with the disk while the tab is open. */
const REREAD_MS = 5000
const CHECK_DELAY_MS = 350

export interface FileEditorProps {
  readonly workspaceId: string
  readonly path: string
  readonly kind: 'yaml' | 'text'
  /** What a save does: from when on it is used. */
  readonly savedNote: string
  readonly placeholder?: string
}

export function FileEditor(props: FileEditorProps) {
  const { workspaceId, path } = props
  const file = useQuery({
    queryKey: keys.workspace(workspaceId, 'file', path),
    queryFn: () => readVersionedFile(client, workspaceId, path),
    refetchInterval: REREAD_MS,
    staleTime: 0,
  })
  if (file.data === undefined)
    return file.error ? <ReadFailure error={file.error} onRetry={() => file.refetch()} /> : <Loading />
  return <LoadedEditor {...props} onDisk={file.data} />
}

function LoadedEditor({
  workspaceId,
  path,
  kind,
  savedNote,
  placeholder,
  onDisk,
}: FileEditorProps & { readonly onDisk: VersionedFile }) {
  const { base, text, isChanged, setText, take, setBase } = useEditedText({ workspaceId, path, onDisk })
  const [note, setNote] = useState<string>()
  const hasConflict = isChanged && onDisk.version !== base.version
  const check = useFileCheck({ workspaceId, path, text, isChanged })
  const save = async (version: string) => {
    setNote(undefined)
    try {
      const headers = { 'If-Match': version }
      await client.call('PUT /workspaces/{id}/files/{+path}', { id: workspaceId, path, body: text }, { headers })
      const saved = await readVersionedFile(client, workspaceId, path)
      setBase(saved)
      queryClient.setQueryData(keys.workspace(workspaceId, 'file', path), saved)
      setNote(savedNote)
    } catch (thrown) {
      if (problemsOf(thrown).length > 0) check.show(problemsOf(thrown))
      else setNote(reasonOf(thrown))
      await queryClient.invalidateQueries({ queryKey: keys.workspace(workspaceId, 'file', path) })
    }
  }
  const canSave = isChanged && check.problems.length === 0 && !hasConflict
  const saveIfPossible = () => {
    if (canSave) void save(base.version)
  }
  return (
    <section
      aria-label={path}
      className={classNames(
        'overflow-hidden rounded-box border bg-surface focus-within:outline-2 focus-within:outline-accent',
        check.problems.length > 0 ? 'border-needs' : 'border-edge',
      )}
    >
      <header className="flex min-h-11 flex-wrap items-center justify-end gap-2 border-line border-b bg-raised py-1 pr-2 pl-4">
        <h3 className="font-[650] font-mono text-second">{path}</h3>
        <p role="status" className="min-w-0 grow basis-32 text-second">
          <EditorStatus problems={check.problems} isChanged={isChanged} note={note} />
        </p>
        {isChanged ? (
          <Button variant="quiet" onClick={() => take(onDisk)}>
            Undo changes
          </Button>
        ) : null}
        <Button disabled={!canSave} onClick={saveIfPossible}>
          Save
        </Button>
      </header>
      {hasConflict ? (
        <ConflictNotice path={path} onTheirs={() => take(onDisk)} onMine={() => save(onDisk.version)} />
      ) : null}
      <Editor
        label={path}
        text={text}
        onChange={setText}
        problems={check.problems}
        kind={kind}
        placeholder={placeholder}
        onSave={saveIfPossible}
      />
      {check.warnings.length > 0 ? (
        <ul className="border-line border-t px-4 py-2 text-second text-soft">
          {check.warnings.map((warning) => (
            <li key={warning}>{asSentence(warning)}</li>
          ))}
        </ul>
      ) : null}
    </section>
  )
}

interface EditedTextInput {
  readonly workspaceId: string
  readonly path: string
  readonly onDisk: VersionedFile
}

interface FileDraft {
  readonly text: string
  /** What the edit began with. */
  readonly base: VersionedFile
}

/** The text in the editor, and the file that it began with. An edit that is not saved is kept until it is. */
function useEditedText({ workspaceId, path, onDisk }: EditedTextInput) {
  const name = `${workspaceId}.config.${path}`
  const fresh = (file: VersionedFile): FileDraft => ({ base: file, text: file.text ?? '' })
  const [edit, setEdit] = useState(() => readForm<FileDraft>(name) ?? fresh(onDisk))
  const { base, text } = edit
  const isChanged = text !== (base.text ?? '')
  useEffect(() => keepForm(name, isChanged ? { base, text } : undefined), [name, base, text, isChanged])
  // A file that the user has not touched follows the disk.
  // biome-ignore lint/correctness/useExhaustiveDependencies: `fresh` is new on each render.
  useEffect(() => {
    if (!isChanged && onDisk.version !== base.version) setEdit(fresh(onDisk))
  }, [onDisk, isChanged, base.version])
  return {
    ...edit,
    isChanged,
    take: (file: VersionedFile) => setEdit(fresh(file)),
    setBase: (file: VersionedFile) => setEdit((before) => ({ ...before, base: file })),
    setText: (next: string) => setEdit((before) => ({ ...before, text: next })),
  }
}

interface EditorStatusProps {
  readonly problems: readonly FileProblem[]
  readonly isChanged: boolean
  readonly note: string | undefined
}

function EditorStatus({ problems, isChanged, note }: EditorStatusProps): ReactNode {
  const [first] = problems
  if (first !== undefined) {
    const count = problems.length === 1 ? '1 error' : `${problems.length} errors`
    return <span className="text-needs">{`${count}, line ${first.line}`}</span>
  }
  if (isChanged) return <span className="text-soft">Not saved yet</span>
  return <span className="text-soft">{note}</span>
}

interface ConflictNoticeProps {
  readonly path: string
  readonly onTheirs: () => void
  readonly onMine: () => void
}

function ConflictNotice({ path, onTheirs, onMine }: ConflictNoticeProps) {
  return (
    <div
      role="alert"
      className="flex flex-wrap items-center justify-end gap-2 border-needs-line border-b bg-needs-soft px-4 py-2 text-second"
    >
      <p className="min-w-0 grow basis-52 text-needs">{path} changed on the disk while you edited it.</p>
      <Button onClick={onTheirs}>Take that version</Button>
      <Button onClick={onMine}>Save mine over it</Button>
    </div>
  )
}

interface FileCheckInput {
  readonly workspaceId: string
  readonly path: string
  readonly text: string
  readonly isChanged: boolean
}

/** Asks the platform after each pause of typing. A text that is not changed is also checked: it may be wrong on the disk. */
function useFileCheck({ workspaceId, path, text }: FileCheckInput) {
  const [problems, setProblems] = useState<readonly FileProblem[]>([])
  const [warnings, setWarnings] = useState<readonly string[]>([])
  useEffect(() => {
    let isCurrent = true
    const timer = setTimeout(() => {
      client.call('PUT /workspaces/{id}/files/{+path}', { id: workspaceId, path, dry_run: true, body: text }).then(
        (checked) => {
          if (!isCurrent) return
          setProblems([])
          setWarnings([
            ...(checked.warnings ?? []),
            ...(checked.reason === undefined ? [] : [reasonOf(new Error(checked.reason))]),
          ])
        },
        (thrown: unknown) => isCurrent && setProblems(problemsOf(thrown)),
      )
    }, CHECK_DELAY_MS)
    return () => {
      isCurrent = false
      clearTimeout(timer)
    }
  }, [workspaceId, path, text])
  return { problems, warnings, show: setProblems }
}

function problemsOf(thrown: unknown): readonly FileProblem[] {
  if (!(thrown instanceof MoleculeError)) return []
  const { problems } = thrown.details as { problems?: readonly FileProblem[] }
  return problems ?? []
}
