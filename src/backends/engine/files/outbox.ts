/**
 * Files on the way out: a folder of the conversation in the working folder, where an agent puts what belongs to its
 * answer. Empty when a turn begins, so that nothing of an attempt that broke off is handed over. Invariant: only files
 * of this folder itself leave, no link is followed, and together they stay below the limit.
 */
import { lstatSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { toMoleculeError } from '../../../errors.ts'
import type { Part } from '../../../protocol/a2a.ts'
import { safeFileName } from '../../../protocol/file-name.ts'
import { collectFile, openMoleculeFolder } from './attachments.ts'

const FILES_MAX = 64
/** All together: an answer crosses the wire and is stored whole. */
const OUTBOX_BYTES_MAX = 16 * 1024 * 1024

/**
 * Throws `bad_config` where something that is no folder is in its place. Looked at without a thread in between: nearly
 * always there is nothing to do, and six hops to a thread took longer than all the rest that is added to a warm turn.
 */
export async function openOutbox(workingDir: string, conversationId: string): Promise<string> {
  const name = safeFileName(conversationId, 'conversation')
  const known = join(workingDir, '.molecule', 'outbox', name)
  if (
    isEmptyFolder(known) &&
    isFolder(join(workingDir, '.molecule')) &&
    isFolder(join(workingDir, '.molecule', 'outbox'))
  ) {
    return known
  }
  const folder = join(await openMoleculeFolder(workingDir, 'outbox'), name)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { mode: 0o700 })
  return folder
}

/** A folder itself and no link to one. */
const isFolder = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true

const isEmptyFolder = (path: string): boolean => isFolder(path) && readdirSync(path).length === 0

export interface OutboxFiles {
  readonly files: readonly Part[]
  /** Why a file stayed behind, a line each. */
  readonly refused: readonly string[]
}

/** Takes what is in the folder, by name; nothing is left of it afterwards. */
export async function collectOutbox(folder: string, workingDir: string): Promise<OutboxFiles> {
  if (isEmptyFolder(folder)) return { files: [], refused: [] }
  const files: Part[] = []
  const refused: string[] = []
  let room = OUTBOX_BYTES_MAX
  for (const [index, name] of listFileNames(folder).entries()) {
    try {
      if (index >= FILES_MAX) throw new Error(`an answer may have ${FILES_MAX} files`)
      const part = await collectFile(join(folder, name), workingDir)
      const bytes = Buffer.byteLength(part.raw ?? '', 'base64')
      if (bytes > room) throw new Error(`all files of an answer together may have ${OUTBOX_BYTES_MAX} bytes`)
      room -= bytes
      files.push(part)
    } catch (thrown) {
      refused.push(`the file ${safeFileName(name, 'file')} was not handed over: ${toMoleculeError(thrown).message}`)
    }
  }
  rmSync(folder, { recursive: true, force: true })
  return { files, refused }
}

function listFileNames(folder: string): string[] {
  // The agent may have taken the folder away.
  if (!isFolder(folder)) return []
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => entry.name)
    .sort()
}
