/**
 * `adapters.json`: the hash of each adapter at the last start, and since when it has this hash. Tells the owner which
 * code in the platform is new. It is no protection against an agent that runs as the same user and edits this file too.
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
}

export const adaptersDirOf = (dataDir: string): string => join(dataDir, 'adapters')

/** Compares the adapters on the disk with those of the last start. Sorted by name. */
export async function compareAdapters(dataDir: string): Promise<AdapterState[]> {
  const [recorded, found] = [readRecord(dataDir), await hashAdapters(adaptersDirOf(dataDir))]
  const present = [...found].map(([adapter, hash]): AdapterState => {
    const known = recorded.get(adapter)
    if (known === undefined) return { adapter, hash, change: 'new' }
    return known.hash === hash ? { adapter, ...known, change: 'none' } : { adapter, hash, change: 'changed' }
  })
  const removed = [...recorded].filter(([adapter]) => !found.has(adapter))
  return [...present, ...removed.map(([adapter, { hash }]): AdapterState => ({ adapter, hash, change: 'removed' }))]
}

/** Makes these the adapters of the last start. */
export function recordAdapters(dataDir: string, states: readonly AdapterState[], now: string): void {
  const present = states.filter(({ change }) => change !== 'removed')
  if (states.every(({ change }) => change === 'none')) return
  const record = Object.fromEntries(present.map(({ adapter, hash, since = now }) => [adapter, { hash, since }]))
  writeFileAtomically(recordPath(dataDir), `${JSON.stringify(record, null, 2)}\n`)
}

const recordPath = (dataDir: string): string => join(dataDir, 'adapters.json')

interface RecordedAdapter {
  readonly hash: string
  readonly since: string
}

/** Missing or unreadable: every adapter counts as new, which is reported and harmless. */
function readRecord(dataDir: string): Map<string, RecordedAdapter> {
  try {
    const value = JSON.parse(readFileSync(recordPath(dataDir), 'utf8')) as Record<string, Partial<RecordedAdapter>>
    const entries = Object.entries(value).map(([adapter, known]): [string, RecordedAdapter] => [
      adapter,
      { hash: String(known.hash), since: String(known.since) },
    ])
    return new Map(entries)
  } catch {
    return new Map()
  }
}
