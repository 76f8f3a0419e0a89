/**
 * "Needs you": one list of everything that waits for a person, for every door, the most urgent kind first. A page ends
 * after a kind that has more, or when it is full. What a workspace itself needs follows from its status, which is not only
 * in the store: the caller reads the workspaces and gives them.
 */
import type { ApiAnswer } from '../../api/api.ts'
import { MoleculeError } from '../../errors.ts'
import { type ReadStore, type Row, together } from '../../store/store.ts'
import { TURNS_PER_HOUR_DEFAULT } from '../../workspaces/workspace.ts'
import { NEED_ACTIONS } from './need-actions.ts'
import { type FoundNeed, markOf, NEED_SOURCES, type NeedAnswer, type NeedCount, type NeedPage } from './need-rows.ts'
import { type NeedyWorkspace, needOfWorkspace } from './workspace-need.ts'

/** A page with this many needs, or this many characters of text, asks for no further kind. */
const NEEDS_MAX = 100
const CHARACTERS_MAX = 512 * 1024

export interface NeedsQuery {
  /** Needs of this workspace only. */
  readonly workspaceId?: string | undefined
  /** The `next` of the page before. */
  readonly after?: string | undefined
  /** That workspace if it exists, or all. */
  readonly workspaces: readonly NeedyWorkspace[]
}

export interface NeedSummary {
  readonly count: number
  /** Differs after each change of the list. */
  readonly mark: string
}

type NeedsAnswer = ApiAnswer<'GET /needs-you'>

export async function readNeeds(
  store: ReadStore,
  { workspaceId = '', after, workspaces }: NeedsQuery,
): Promise<NeedsAnswer> {
  const { count } = await readNeedSummary(store, workspaces, workspaceId)
  const { needs, next } = await readPage(store, { workspaceId, after, workspaces })
  const byId = new Map(workspaces.map((workspace) => [workspace.id, workspace]))
  return { needs_you: needs.map((need) => needAnswer(need, byId.get(need.workspace_id))), count, next }
}

/** Of the workspaces, given as they were just read, and of what is stored. */
export async function readNeedSummary(
  store: ReadStore,
  workspaces: readonly NeedyWorkspace[],
  workspaceId = '',
): Promise<NeedSummary> {
  const counted = await store.read(() => together(NEED_SOURCES.map((source) => source.count(workspaceId))))
  const stored = counted.flat() as (Row & NeedCount)[]
  const own = workspaces.flatMap((workspace) => needOfWorkspace(workspace) ?? [])
  return {
    count: stored.reduce((sum, { count }) => sum + Number(count), own.length),
    mark: [...stored.map(markOf), ...own.map(({ id, kind }) => `${kind} ${id}`)].join('/'),
  }
}

/** The workspaces that need a person themselves come last. There are at most as many as workspaces: they have no pages. */
const WORKSPACE_KINDS = ['login', 'workspace'] as const
const KINDS: readonly FoundNeed['kind'][] = [...NEED_SOURCES.map(({ kind }) => kind), ...WORKSPACE_KINDS]

/** Each kind is a transaction of its own: other callers run between two of them. */
async function readPage(
  store: ReadStore,
  { workspaceId, after, workspaces }: NeedsQuery & { readonly workspaceId: string },
): Promise<NeedPage> {
  const from = after === undefined ? undefined : readCursor(after)
  const needs: FoundNeed[] = []
  let characters = 0
  for (const [index, kind] of KINDS.entries()) {
    if (from !== undefined && index < from.index) continue
    if (needs.length >= NEEDS_MAX || characters >= CHARACTERS_MAX) return { needs, next: kind }
    const source = NEED_SOURCES[index]
    const cursor = index === from?.index ? from.after : undefined
    const page: NeedPage =
      source === undefined
        ? {
            needs: workspaces
              .flatMap((workspace) => needOfWorkspace(workspace) ?? [])
              .filter((need) => need.kind === kind),
          }
        : await store.read(() => source.page({ workspaceId, after: cursor }))
    needs.push(...page.needs)
    characters += page.needs.reduce((sum, need) => sum + sizeOf(need), 0)
    if (page.next !== undefined) return { needs, next: `${kind}:${page.next}` }
  }
  return { needs }
}

const sizeOf = ({ reason, text = '', permission }: FoundNeed): number =>
  reason.length + text.length + 2 * (permission?.subject.length ?? 0)

/** `<kind>`, or `<kind>:<cursor of the kind>`. */
function readCursor(text: string): { index: number; after: string | undefined } {
  const [, name = '', after] = /^([a-z_]+)(?::(.+))?$/.exec(text) ?? []
  const index = KINDS.indexOf(name as FoundNeed['kind'])
  if (index >= 0) return { index, after }
  throw new MoleculeError('invalid_request', 'after must be the "next" of an earlier page', {
    details: { path: 'after' },
  })
}

/** The workspace is undefined when it is deleted. */
const needAnswer = (need: FoundNeed, workspace: NeedyWorkspace | undefined): NeedAnswer => ({
  ...need,
  workspace_name: workspace?.name ?? null,
  actions: NEED_ACTIONS[need.kind](
    need,
    Number(workspace?.runtimeConfig['max_turns_per_hour']) || TURNS_PER_HOUR_DEFAULT,
  ),
})
