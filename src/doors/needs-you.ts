/**
 * "Needs you": one list of everything that waits for a person, for every door. Each kind comes from its own source, the
 * most urgent kind first. A page ends after a source that has more, or when it is full.
 */
import { MoleculeError } from '../errors.ts'
import type { BudgetAsk, Need, NeedKind, NeedSource, NeedSummary } from '../inbox/owners.ts'
import { nextUsd } from '../usd.ts'
import { TURNS_PER_HOUR_DEFAULT, type Workspace, type WorkspaceLoad, type Workspaces } from '../workspaces/workspace.ts'

/** A page with this many needs, or this many characters of text, asks no further source. */
const NEEDS_MAX = 100
const CHARACTERS_MAX = 512 * 1024

export interface NeedsYouQuery {
  readonly workspaceId?: string
  /** The cursor of the page before. */
  readonly after?: string
}

export interface NamedNeed extends Need {
  /** Absent when the workspace is deleted. */
  readonly workspaceName?: string
  /** Of a turn limit: `max_turns_per_hour` now. */
  readonly turnsPerHourMax?: number
}

export interface NeedsYouPage {
  readonly needs: readonly NamedNeed[]
  /** On all pages. */
  readonly count: number
  readonly next?: string
}

export interface NeedsYou {
  list(query: NeedsYouQuery): Promise<NeedsYouPage>
  /** Changes with each change of the list of all workspaces, given as they were just read. */
  summary(all: readonly WatchableWorkspace[]): Promise<NeedSummary>
}

export type WatchableWorkspace = Workspace & WorkspaceLoad

export function createNeedsYou(sources: readonly NeedSource[], workspaces: Pick<Workspaces, 'all' | 'get'>): NeedsYou {
  const readWorkspaces = async (workspaceId: string | undefined) => {
    if (workspaceId === undefined) return await workspaces.all()
    const found = await workspaces.get(workspaceId)
    return found === undefined ? [] : [found]
  }
  const summarize = async (all: readonly WatchableWorkspace[], workspaceId?: string): Promise<NeedSummary> => {
    const stored = await Promise.all(sources.map((source) => source.summary(workspaceId)))
    const own = all.flatMap((workspace) => needOfWorkspace(workspace) ?? [])
    return {
      count: stored.reduce((sum, { count }) => sum + count, own.length),
      mark: [...stored.map(({ mark }) => mark), ...own.map(({ id, kind }) => `${kind} ${id}`)].join('/'),
    }
  }
  return {
    async list({ workspaceId, after }) {
      const all = await readWorkspaces(workspaceId)
      const byId = new Map(all.map((workspace) => [workspace.id, workspace]))
      const { count } = await summarize(all, workspaceId)
      const { needs, next } = await readPage([...sources, ...workspaceSources(all)], { workspaceId, after })
      const named = needs.map((need) => {
        const workspace = byId.get(need.workspaceId)
        return workspace === undefined ? need : { ...need, workspaceName: workspace.name, ...limitOf(need, workspace) }
      })
      return { needs: named, count, ...(next !== undefined && { next }) }
    },
    summary: (all) => summarize(all),
  }
}

type ListedKind = Pick<NeedSource, 'kind' | 'list'>

async function readPage(
  sources: readonly ListedKind[],
  { workspaceId, after }: { readonly workspaceId: string | undefined; readonly after: string | undefined },
): Promise<{ needs: readonly Need[]; next: string | undefined }> {
  const from = after === undefined ? undefined : readCursor(sources, after)
  const needs: Need[] = []
  let characters = 0
  for (const [index, { kind, list }] of sources.entries()) {
    if (from !== undefined && index < from.index) continue
    if (needs.length >= NEEDS_MAX || characters >= CHARACTERS_MAX) return { needs, next: kind }
    const cursor = index === from?.index ? from.after : undefined
    const page = await list({ ...(workspaceId !== undefined && { workspaceId }), ...(cursor && { after: cursor }) })
    needs.push(...page.rows)
    characters += page.rows.reduce((sum, need) => sum + sizeOf(need), 0)
    if (page.next !== undefined) return { needs, next: `${kind}:${page.next}` }
  }
  return { needs, next: undefined }
}

const sizeOf = ({ reason, text = '', ask }: Need): number =>
  reason.length + text.length + 2 * (ask?.subject.length ?? 0)

/** `<kind>`, or `<kind>:<cursor of the source>`. */
function readCursor(sources: readonly ListedKind[], text: string): { index: number; after: string | undefined } {
  const [, name = '', after] = /^([a-z_]+)(?::(.+))?$/.exec(text) ?? []
  const index = sources.findIndex(({ kind }) => kind === name)
  if (index >= 0) return { index, after }
  throw new MoleculeError('invalid_request', 'after must be the "next" of an earlier page', {
    details: { path: 'after' },
  })
}

/** The workspaces that need a person themselves. There are at most as many as workspaces, so they have no pages. */
function workspaceSources(all: readonly WatchableWorkspace[]): ListedKind[] {
  const needs = all.flatMap((workspace) => needOfWorkspace(workspace) ?? [])
  const ofKind = (kind: NeedKind): ListedKind => ({
    kind,
    list: async () => ({ rows: needs.filter((need) => need.kind === kind) }),
  })
  return [ofKind('login'), ofKind('workspace')]
}

/**
 * Undefined for a workspace that works, and for one that a person has paused. `offline` needs a person only while messages
 * wait, and `degraded` goes on by itself.
 */
export function needOfWorkspace(workspace: Workspace & Partial<WorkspaceLoad>): Need | undefined {
  const { id, status, statusReason, queueDepth = 0 } = workspace
  const need = (kind: NeedKind, reason: string): Need => ({ kind, id, workspaceId: id, reason })
  const waiting = queueDepth === 1 ? '1 message waits' : `${queueDepth} messages wait`
  if (status === 'needs_login') return need('login', statusReason ?? 'its agent is not logged in')
  if (status === 'failed') return need('workspace', statusReason ?? 'it cannot run')
  if (status !== 'offline' || queueDepth === 0) return undefined
  return need('workspace', `it is offline and ${waiting}${statusReason === undefined ? '' : `: ${statusReason}`}`)
}

function limitOf({ kind }: Need, { runtimeConfig }: Workspace): Pick<NamedNeed, 'turnsPerHourMax'> {
  if (kind !== 'turn_limit') return {}
  return { turnsPerHourMax: Number(runtimeConfig['max_turns_per_hour']) || TURNS_PER_HOUR_DEFAULT }
}

/** The amount that every door suggests for a budget that is spent. */
export const raiseSuggestion = ({ limitUsd, spentUsd }: Pick<BudgetAsk, 'limitUsd' | 'spentUsd'>): number =>
  nextUsd(Math.max(limitUsd, spentUsd))
