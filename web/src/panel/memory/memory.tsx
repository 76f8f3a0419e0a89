/** What a workspace remembers: its own memories and those of its team. People search, add and forget. */
import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useEffect, useState } from 'react'
import type { MemoryView } from '../../../../src/client/views.ts'
import { client } from '../../api/client.ts'
import { keys, useMay, useWorkspaces } from '../../api/queries.ts'
import { Button } from '../../ui/button.tsx'
import { Chip } from '../../ui/chip.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { Field, TextArea } from '../../ui/field.tsx'
import { Choice, Loaded, Row, Rows } from '../../ui/section.tsx'
import { Time } from '../../ui/text/time.tsx'
import { showToast } from '../../ui/toasts.tsx'
import { useDraft } from '../../ui/use-draft.ts'
import { refresh, usePanelAction, useRefreshOnChange } from '../refresh.ts'
import type { TabProps } from '../tab.ts'

type Namespace = 'workspace' | 'team'

/** More are found by searching. */
const MEMORIES_SHOWN = 100
const SEARCH_DELAY_MS = 250

export function Memory({ workspace }: TabProps) {
  const may = useMay()
  const [namespace, setNamespace] = useState<Namespace>('workspace')
  const [words, setWords] = useState('')
  const query = useDelayed(words.trim())
  useRefreshOnChange(workspace.id, 'memory')
  const found = useQuery({
    queryKey: keys.workspace(workspace.id, 'memory', namespace, query),
    queryFn: async () => {
      const search = { namespace, limit: MEMORIES_SHOWN, query: query === '' ? undefined : query }
      return (await client.call('GET /workspaces/{id}/memories', { id: workspace.id, ...search })).memories
    },
    placeholderData: (before) => before,
  })
  return (
    <div className="flex flex-col gap-4 p-5">
      <div className="flex flex-wrap items-end gap-3">
        <div className="min-w-0 grow basis-48">
          <Field
            label="Search"
            type="search"
            placeholder="Words of a memory"
            value={words}
            onChange={(event) => setWords(event.target.value)}
          />
        </div>
        <div className="pb-1">
          <Choice
            label="Whose memories"
            options={[
              { id: 'workspace', title: 'Its own' },
              { id: 'team', title: 'Team' },
            ]}
            chosen={namespace}
            onChoose={setNamespace}
          />
        </div>
      </div>
      <Loaded query={found}>
        {(data) => <Memories memories={data} workspaceId={workspace.id} name={workspace.name} query={query} />}
      </Loaded>
      {may('memory.write') ? <AddMemory workspaceId={workspace.id} namespace={namespace} /> : null}
    </div>
  )
}

function useDelayed(text: string): string {
  const [delayed, setDelayed] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setDelayed(text), SEARCH_DELAY_MS)
    return () => clearTimeout(timer)
  }, [text])
  return delayed
}

interface MemoriesProps {
  readonly memories: readonly MemoryView[]
  readonly workspaceId: string
  readonly name: string
  readonly query: string
}

function Memories({ memories, workspaceId, name, query }: MemoriesProps) {
  if (memories.length === 0 && query !== '') return <EmptyState title={`No memory matches “${query}”`} />
  if (memories.length === 0) {
    return <EmptyState title={`${name} remembers nothing yet`}>Agents write here what they want to keep.</EmptyState>
  }
  return (
    <Rows>
      {memories.map((memory) => (
        <MemoryRow key={memory.id} memory={memory} workspaceId={workspaceId} />
      ))}
    </Rows>
  )
}

function MemoryRow({ memory, workspaceId }: { readonly memory: MemoryView; readonly workspaceId: string }) {
  const may = useMay()
  const workspaces = useWorkspaces()
  const { isBusy, run } = usePanelAction()
  const { id, namespace, text, kind } = memory
  const isSummary = kind === 'summary'
  const restore = async () => {
    await run(() => client.call('POST /workspaces/{id}/memories', { id: workspaceId, body: { text, namespace, kind } }))
    refresh(workspaceId, 'memory')
  }
  const forget = async () => {
    const target = { id: workspaceId, memory: id, namespace }
    if (!(await run(() => client.call('DELETE /workspaces/{id}/memories/{memory}', target)))) return
    refresh(workspaceId, 'memory')
    showToast('Forgotten', { title: 'Undo', onChoose: restore })
  }
  const author = workspaces.get(memory.written_by)?.name ?? memory.written_by
  return (
    <Row
      actions={
        may('memory.write') ? (
          <Button variant="quiet" disabled={isBusy} onClick={forget}>
            Forget
          </Button>
        ) : undefined
      }
    >
      <p dir="auto" className="whitespace-pre-wrap">
        {text}
      </p>
      <p className="mt-1 flex flex-wrap items-center gap-x-2 text-faint text-time">
        <span>
          {author}, <Time at={memory.created_at} />
        </span>
        {isSummary ? <Chip>summary</Chip> : null}
        {memory.expires_at === null ? null : (
          <span>
            kept until <Time at={memory.expires_at} />
          </span>
        )}
      </p>
    </Row>
  )
}

function AddMemory({ workspaceId, namespace }: { readonly workspaceId: string; readonly namespace: Namespace }) {
  const { value, change, forget } = useDraft(`${workspaceId}.memory.new`, { text: '' })
  const { text } = value
  const { isBusy, run } = usePanelAction()
  const add = async (event: FormEvent) => {
    event.preventDefault()
    if (text.trim() === '') return
    const body = { text: text.trim(), namespace }
    if (!(await run(() => client.call('POST /workspaces/{id}/memories', { id: workspaceId, body })))) return
    forget()
    refresh(workspaceId, 'memory')
  }
  return (
    <form onSubmit={add} className="flex flex-col items-start gap-2">
      <div className="w-full">
        <TextArea
          label="Add a memory"
          rows={3}
          value={text}
          onChange={(event) => change({ text: event.target.value })}
          hint={
            namespace === 'team'
              ? 'Its parent and all its siblings can read it.'
              : 'The agent finds it when it searches its memory.'
          }
        />
      </div>
      <Button type="submit" disabled={isBusy || text.trim() === ''}>
        Remember
      </Button>
    </form>
  )
}
