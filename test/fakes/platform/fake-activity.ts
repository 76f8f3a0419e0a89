/** Numbered logs in memory that keep the contract of `WorkspaceLogs` as far as a reader sees it. */
import type { WorkspaceLogs } from '../../../src/doors/workspace-logs.ts'
import { MoleculeError } from '../../../src/errors.ts'
import type { ActivityRow } from '../../../src/views/activity.ts'
import { instant } from '../../../src/views/instant.ts'

export interface FakeActivityLogs {
  readonly logs: WorkspaceLogs
  /** Adds a row whose text has this many characters; returns its number. */
  add(workspaceId: string, characters?: number): number
  /** Adds a row as another process would: the hint does not name the workspace. */
  addElsewhere(workspaceId: string): void
  /** Prunes all rows up to this number. */
  prune(workspaceId: string, seq: number): void
  remove(workspaceId: string): void
  /** The number of pages that were read. */
  pages(): number
}

export function createFakeActivityLogs(workspaceIds: readonly string[]): FakeActivityLogs {
  const rowsOf = new Map(workspaceIds.map((id) => [id, { rows: [] as ActivityRow[], pruned: 0 }]))
  const watchers = new Set<(workspaceId?: string) => void>()
  let pages = 0
  const mustFind = (id: string) => {
    const log = rowsOf.get(id)
    if (log === undefined) throw new MoleculeError('not_found', `there is no workspace ${id}`)
    return log
  }
  const push = (workspaceId: string, characters: number) => {
    const { rows } = mustFind(workspaceId)
    const seq = rows.length + 1
    rows.push({ seq, entries: [{ seq, at: instant(0), type: 'note', text: 'x'.repeat(characters) }] })
    return seq
  }
  const logs: WorkspaceLogs = {
    async *follow() {},
    async resolveCursor(workspaceId, afterSeq) {
      const { rows, pruned } = mustFind(workspaceId)
      if (afterSeq === undefined) return rows.length
      if (afterSeq === 0 || afterSeq >= pruned) return afterSeq
      throw new MoleculeError('pruned', 'no longer kept', { details: { prunedSeq: pruned } })
    },
    async page(workspaceId, afterSeq) {
      pages += 1
      return rowsOf.get(workspaceId)?.rows.slice(afterSeq, afterSeq + 16)
    },
    heads: async () => new Map([...rowsOf].map(([id, { rows }]) => [id, rows.length])),
    onChange(callback) {
      watchers.add(callback)
      return () => watchers.delete(callback)
    },
  }
  return {
    logs,
    pages: () => pages,
    add(workspaceId, characters = 5) {
      const seq = push(workspaceId, characters)
      for (const callback of watchers) callback(workspaceId)
      return seq
    },
    addElsewhere(workspaceId) {
      push(workspaceId, 5)
      for (const callback of watchers) callback()
    },
    prune(workspaceId, seq) {
      mustFind(workspaceId).pruned = seq
    },
    remove(workspaceId) {
      rowsOf.delete(workspaceId)
      for (const callback of watchers) callback(workspaceId)
    },
  }
}
