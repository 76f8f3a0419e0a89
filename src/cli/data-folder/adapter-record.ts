/**
 * `adapters.json`: the hash of each adapter at the last start, since when it has this hash, and why it was broken. Tells
 * the owner which code in the platform is new. It is no protection against an agent that runs as the same user and edits
 * this file too.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { hashAdapters } from '../../backends/adapter-hash.ts'
import { writeFileAtomically } from './data-folder.ts'

export interface AdapterState {
  /** The name of its folder. */
  readonly adapter: string
  readonly hash: string
  /** Compared with the last start. */
  readonly change: 'new' | 'changed' | 'none' | 'removed'
  /** ISO 8601: the first start with this hash; undefined if none has been made yet. */
  readonly since?: string
  /** Why the last start could not load it. */
  readonly problem?: string
}

export const adaptersDirOf = (dataDir: string): string => join(dataDir, 'adapters')

/** Compares the adapters on the disk with those of the last start. Sorted by name. */
export async function compareAdapters(dataDir: string): Promise<AdapterState[]> {
  const [recorded, found] = [readRecord(dataDir), await hashAdapters(adaptersDirOf(dataDir))]
  const present = [...found].map(([adapter, hash]): AdapterState => {
    const known = recorded.get(adapter)
    if (known === undefined) return { adapter, hash, change: 'new' }
    return known.hash === hash ? { ...known, adapter, change: 'none' } : { adapter, hash, change: 'changed' }
  })
  const removed = [...recorded].filter(([adapter]) => !found.has(adapter))
  return [...present, ...removed.map(([adapter, { hash }]): AdapterState => ({ adapter, hash, change: 'removed' }))]
}

/** Makes these the adapters of the last start. */
export function recordAdapters(dataDir: string, states: readonly AdapterState[], now: string): void {
  const present = states.filter(({ change }) => change !== 'removed')
  const entries = present.map(({ adapter, hash, since = now, problem }) => [adapter, { hash, since, problem }])
  const text = `${JSON.stringify(Object.fromEntries(entries), null, 2)}\n`
  if (text !== readText(dataDir, '{}\n')) writeFileAtomically(recordPath(dataDir), text)
}

/** After `installed` have got packages from npm. Before any is loaded: its code could change itself unnoticed. */
export async function rehashInstalled(
  dataDir: string,
  states: readonly AdapterState[],
  installed: readonly string[],
): Promise<AdapterState[]> {
  if (installed.length === 0) return [...states]
  const hashes = await hashAdapters(adaptersDirOf(dataDir))
  return states.map((state) =>
    installed.includes(state.adapter) ? { ...state, hash: hashes.get(state.adapter) ?? state.hash } : state,
  )
}

/** Adds what the start has learned: which adapters are broken. */
export function recordBroken(
  dataDir: string,
  states: readonly AdapterState[],
  { broken, now }: { readonly broken: ReadonlyMap<string, string>; readonly now: string },
): void {
  const learned = states.map(({ problem: _, ...state }): AdapterState => {
    const problem = broken.get(state.adapter)
    return { ...state, ...(problem !== undefined && { problem }) }
  })
  recordAdapters(dataDir, learned, now)
}

function readText(dataDir: string, fallback: string): string {
  try {
    return readFileSync(recordPath(dataDir), 'utf8')
  } catch {
    return fallback
  }
}

const recordPath = (dataDir: string): string => join(dataDir, 'adapters.json')

interface RecordedAdapter {
  readonly hash: string
  readonly since: string
  readonly problem?: string
}

/** Missing or unreadable: every adapter counts as new, which is reported and harmless. */
function readRecord(dataDir: string): Map<string, RecordedAdapter> {
  try {
    const value = JSON.parse(readText(dataDir, '{}')) as Record<string, Partial<RecordedAdapter>>
    const entries = Object.entries(value).map(([adapter, known]): [string, RecordedAdapter] => [
      adapter,
      {
        hash: String(known.hash),
        since: String(known.since),
        ...(known.problem !== undefined && { problem: String(known.problem) }),
      },
    ])
    return new Map(entries)
  } catch {
    return new Map()
  }
}
