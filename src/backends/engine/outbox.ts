/**
 * Files on the way out: a folder of the conversation in the working folder, where an agent puts what belongs to its
 * answer. Made anew for each turn, so that nothing of an attempt that broke off is handed over. Invariant: only files of
 * this folder itself leave, no link is followed, and together they stay below the limit.
 */
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { toMoleculeError } from '../../errors.ts'
import type { Part } from '../../protocol/a2a.ts'
import { safeFileName } from '../../protocol/file-name.ts'
import { collectFile, openMoleculeFolder } from './attachments.ts'

const FILES_MAX = 64
/** All together: an answer crosses the wire and is stored whole. */
const OUTBOX_BYTES_MAX = 16 * 1024 * 1024

/** Throws `bad_config` where something that is no folder is in its place. */
export async function openOutbox(workingDir: string, conversationId: string): Promise<string> {
  const folder = join(await openMoleculeFolder(workingDir, 'outbox'), safeFileName(conversationId, 'conversation'))
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { mode: 0o700 })
  return folder
}

export interface Outgoing {
  readonly files: readonly Part[]
  /** Why a file stayed behind, a line each. */
  readonly refused: readonly string[]
}

/** Takes what is in the folder, by name; the folder is empty afterwards. */
export async function emptyOutbox(folder: string, workingDir: string): Promise<Outgoing> {
  const files: Part[] = []
  const refused: string[] = []
  let room = OUTBOX_BYTES_MAX
  for (const name of (await namesIn(folder)).slice(0, FILES_MAX)) {
    try {
      const part = await collectFile(join(folder, name), workingDir)
      const bytes = Buffer.byteLength(part.raw ?? '', 'base64')
      if (bytes > room) throw new Error(`all files of an answer together may have ${OUTBOX_BYTES_MAX} bytes`)
      room -= bytes
      files.push(part)
    } catch (thrown) {
      refused.push(`the file ${safeFileName(name, 'file')} was not handed over: ${toMoleculeError(thrown).message}`)
    }
  }
  await rm(folder, { recursive: true, force: true })
  return { files, refused }
}

async function namesIn(folder: string): Promise<string[]> {
  // The agent may have taken the folder away.
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => entry.name)
    .sort()
}
