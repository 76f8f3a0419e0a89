/**
 * What a Matrix channel remembers between two starts: how far the door has stored what people wrote, and the encrypted rooms
 * that were told. Invariant: the position moves on only after the messages before it were stored, and a kill leaves the old
 * file or the new one.
 */
import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../clock.ts'
import { toMoleculeError } from '../../errors.ts'
import type { Log } from '../../log.ts'
import { countOf, listOf, objectOf, textOf } from './matrix-json.ts'

const FILE = 'matrix.json'
/** The door knows the messages of seven days. What is read from an older position could be taken for new. */
const POSITION_MS_MAX = 6 * 24 * 3600_000
/** Encrypted rooms that were told; beyond it the oldest may be told again. */
const TOLD_MAX = 1000

export interface MatrixState {
  /** Of the last sync whose messages are stored; undefined without a usable one. */
  readonly since: string | undefined
  setSince(since: string): Promise<void>
  /** True for the first call with this room. */
  firstTold(roomId: string): Promise<boolean>
}

export interface MatrixStateOptions {
  /** Undefined: nothing is kept. */
  readonly folder: string | undefined
  /** Another account has another position. */
  readonly userId: string
  readonly clock: Clock
  readonly log: Log
}

export async function openMatrixState({ folder, userId, clock, log }: MatrixStateOptions): Promise<MatrixState> {
  const stored = folder === undefined ? {} : objectOf(await readJson(join(folder, FILE)))
  const isOurs = stored['userId'] === userId
  const isRecent = clock.nowMs() - (countOf(stored['atMs']) ?? 0) < POSITION_MS_MAX
  let since = isOurs && isRecent ? textOf(stored['since']) : undefined
  const told = new Set(isOurs ? listOf(stored['told']).flatMap((room) => textOf(room) ?? []) : [])
  let writing = Promise.resolve()
  const save = async () => {
    if (folder === undefined) return
    const text = JSON.stringify({ userId, since, atMs: clock.nowMs(), told: [...told] })
    // One writer at a time, so one temporary file is enough; a later text is never overwritten by an earlier one.
    writing = writing
      .then(() => replaceFile(folder, text))
      .catch((error) => {
        log.warn({ err: toMoleculeError(error) }, 'the position of a Matrix channel could not be stored')
      })
    await writing
  }
  return {
    get since() {
      return since
    },
    async setSince(next) {
      since = next
      await save()
    },
    async firstTold(roomId) {
      if (told.has(roomId)) return false
      told.add(roomId)
      if (told.size > TOLD_MAX) told.delete(told.values().next().value ?? '')
      await save()
      return true
    },
  }
}

async function replaceFile(folder: string, text: string): Promise<void> {
  const temporary = join(folder, `${FILE}.new`)
  await writeFile(temporary, text, { mode: 0o600, flush: true })
  await rename(temporary, join(folder, FILE))
}

/** A file that is missing or broken is as good as none: then the messages are read from the history. */
async function readJson(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8'))
  } catch {
    return undefined
  }
}
