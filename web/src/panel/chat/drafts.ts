/**
 * Unsent text of each conversation, kept in the browser over a reload. Only text is kept: a file would have to be read
 * again. A browser that refuses storage keeps no drafts.
 */
const PREFIX = 'molecule.draft.'
const CHARACTERS_MAX = 100_000
/** The oldest drafts are dropped beyond it. */
const DRAFTS_MAX = 50

interface StoredDraft {
  readonly text: string
  readonly atMs: number
}

export const draftKey = (workspaceId: string, conversation: string): string => `${PREFIX}${workspaceId}.${conversation}`

export function readDraft(key: string, storage: Storage = localStorage): string {
  return readStored(key, storage)?.text ?? ''
}

export function writeDraft(key: string, text: string, storage: Storage = localStorage): void {
  try {
    if (text === '') {
      storage.removeItem(key)
      return
    }
    storage.setItem(
      key,
      JSON.stringify({ text: text.slice(0, CHARACTERS_MAX), atMs: Date.now() } satisfies StoredDraft),
    )
    const keys = Object.keys(storage).filter((each) => each.startsWith(PREFIX))
    if (keys.length <= DRAFTS_MAX) return
    const oldest = keys.toSorted((a, b) => (readStored(a, storage)?.atMs ?? 0) - (readStored(b, storage)?.atMs ?? 0))
    for (const each of oldest.slice(0, keys.length - DRAFTS_MAX)) storage.removeItem(each)
  } catch {
    // The storage is full or refused: the draft lives as long as the page.
  }
}

function readStored(key: string, storage: Storage): StoredDraft | undefined {
  try {
    const stored = JSON.parse(storage.getItem(key) ?? 'null') as StoredDraft | null
    return typeof stored?.text === 'string' ? stored : undefined
  } catch {
    return undefined
  }
}
