/**
 * Unsent text of each conversation, kept in the browser over a reload. Only text is kept: a file would have to be read
 * again. A text that is too long for the storage, or that the browser refuses to store, lives as long as the page, and
 * the browser asks before the page is left.
 */
import { useEffect } from 'react'
import { alsoForget } from '../api/kept-for.ts'

const PREFIX = 'molecule.draft.'
const CHARACTERS_MAX = 100_000
/** The oldest drafts are dropped beyond it. */
const DRAFTS_MAX = 50

/** The texts that are not in the storage, by their key. */
const unstored = new Map<string, string>()
alsoForget(() => unstored.clear())

interface StoredDraft {
  readonly text: string
  readonly atMs: number
}

export const draftKey = (workspaceId: string, conversation: string): string => `${PREFIX}${workspaceId}.${conversation}`

export function readDraft(key: string, storage: Storage = localStorage): string {
  return unstored.get(key) ?? readStored(key, storage)?.text ?? ''
}

/** The keys of all drafts. */
export function draftKeys(storage: Storage = localStorage): readonly string[] {
  try {
    return [...unstored.keys(), ...storedKeys(storage)]
  } catch {
    return [...unstored.keys()]
  }
}

const storedKeys = (storage: Storage): string[] => Object.keys(storage).filter((each) => each.startsWith(PREFIX))

export function writeDraft(key: string, text: string, storage: Storage = localStorage): void {
  unstored.delete(key)
  try {
    if (text === '' || text.length > CHARACTERS_MAX) storage.removeItem(key)
    else storage.setItem(key, JSON.stringify({ text, atMs: Date.now() } satisfies StoredDraft))
    if (text.length > CHARACTERS_MAX) unstored.set(key, text)
    dropOldest(storage)
  } catch {
    if (text !== '') unstored.set(key, text)
  }
}

function dropOldest(storage: Storage): void {
  const keys = storedKeys(storage)
  if (keys.length <= DRAFTS_MAX) return
  const oldest = keys.toSorted((a, b) => (readStored(a, storage)?.atMs ?? 0) - (readStored(b, storage)?.atMs ?? 0))
  for (const each of oldest.slice(0, keys.length - DRAFTS_MAX)) storage.removeItem(each)
}

/** The browser asks before it leaves a page with a text that would be lost. */
export function useAskBeforeLeaving(): void {
  useEffect(() => {
    const onLeave = (event: BeforeUnloadEvent) => {
      if (unstored.size > 0) event.preventDefault()
    }
    addEventListener('beforeunload', onLeave)
    return () => removeEventListener('beforeunload', onLeave)
  }, [])
}

function readStored(key: string, storage: Storage): StoredDraft | undefined {
  try {
    const stored = JSON.parse(storage.getItem(key) ?? 'null') as StoredDraft | null
    return typeof stored?.text === 'string' ? stored : undefined
  } catch {
    return undefined
  }
}
