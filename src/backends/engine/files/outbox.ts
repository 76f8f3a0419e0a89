/**
 * The outbox: a folder of the conversation in the working folder, where an agent puts the files of its answer. It is
 * empty when a turn starts, so that no file of a broken attempt is delivered. Invariant: only files directly in this
 * folder are delivered, no link is followed, and all together stay below the limit.
 */
import { lstatSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MoleculeError, toMoleculeError } from '../../../errors.ts'
import type { Log } from '../../../log.ts'
import type { Artifact, Part } from '../../../protocol/a2a.ts'
import { numberedFileName, safeFileName } from '../../../protocol/file-name.ts'
import type { BackendEvent, Turn } from '../../backend.ts'
import { collectFile, openMoleculeFolder } from './attachments.ts'

/** Further files are refused, each with a line. */
const FILES_MAX = 64
/** Of all files together, because an answer is sent and stored whole. A file beyond it is refused. */
const OUTBOX_BYTES_MAX = 16 * 1024 * 1024

/**
 * Throws `bad_config` if something else than a folder is in its place. Uses synchronous calls: nearly always there is
 * nothing to do, and six asynchronous calls took longer than all the rest that Molecule adds to a warm turn.
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

/** A folder, not a link to one. */
const isFolder = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true

const isEmptyFolder = (path: string): boolean => isFolder(path) && readdirSync(path).length === 0

/**
 * Adds a file to the answer of a turn that runs. Throws `unsupported_operation` where its backend has no outbox in the working
 * folder.
 */
export async function addToOutbox(
  { filename, raw = '' }: Part,
  { workingDir, conversationId }: { readonly workingDir: string; readonly conversationId: string },
): Promise<void> {
  const folders = ['.molecule', 'outbox', safeFileName(conversationId, 'conversation')]
  const paths = folders.map((_, index) => join(workingDir, ...folders.slice(0, index + 1)))
  // An agent may have put a link here: files must not be written to its target.
  if (!paths.every(isFolder))
    throw new MoleculeError('unsupported_operation', 'this agent cannot add a file to its answer this way')
  const folder = paths.at(-1) as string
  const name = safeFileName(filename, 'file')
  const taken = new Set(readdirSync(folder).map((each) => each.toLowerCase()))
  let free = name
  for (let number = 2; taken.has(free.toLowerCase()); number++) free = numberedFileName(name, number)
  writeFileSync(join(folder, free), Buffer.from(raw, 'base64'), { flag: 'wx', mode: 0o600 })
}

interface OutboxFiles {
  readonly files: readonly Part[]
  /** One line for each refused file, with the reason. */
  readonly refused: readonly string[]
}

export interface OutboxOptions {
  readonly folder: string
  /** No file from outside of this folder is delivered. */
  readonly within: string
  readonly log: Log
}

/** The files of the folder as artifacts, and a line for each refused file. Then the folder is removed. */
export async function outboxEvents(
  { messageId }: Pick<Turn, 'messageId'>,
  { folder, within, log }: OutboxOptions,
): Promise<Exclude<BackendEvent, { type: 'done' | 'failed' }>[]> {
  const { files, refused } = await collectOutbox(folder, within)
  for (const text of refused) log.warn({ messageId }, text)
  return [
    ...files.map((file, index) => fileArtifactEvent(messageId, index, file)),
    ...refused.map((text) => ({ type: 'status', text }) as const),
  ]
}

function fileArtifactEvent(messageId: string, index: number, file: Part) {
  const artifact: Artifact = { artifactId: `${messageId}-file-${index + 1}`, parts: [file] }
  const named = file.filename === undefined ? artifact : { ...artifact, name: file.filename }
  return { type: 'artifact', artifact: named, append: false, lastChunk: true } as const
}

/** Takes the files of the folder in order of their names, then removes the folder. */
async function collectOutbox(folder: string, within: string): Promise<OutboxFiles> {
  if (isEmptyFolder(folder)) return { files: [], refused: [] }
  const files: Part[] = []
  const refused: string[] = []
  let leftBytes = OUTBOX_BYTES_MAX
  for (const [index, name] of listFileNames(folder).entries()) {
    try {
      if (index >= FILES_MAX) throw new Error(`an answer may have at most ${FILES_MAX} files`)
      const part = await collectFile(join(folder, name), within)
      const bytes = Buffer.byteLength(part.raw ?? '', 'base64')
      if (bytes > leftBytes)
        throw new Error(`the files of an answer may have at most ${OUTBOX_BYTES_MAX} bytes together`)
      leftBytes -= bytes
      files.push(part)
    } catch (thrown) {
      refused.push(`the file ${safeFileName(name, 'file')} was not delivered: ${toMoleculeError(thrown).message}`)
    }
  }
  try {
    rmSync(folder, { recursive: true, force: true })
  } catch {
    // A folder in it is read-only. Its owner finds out when it is needed again; the answer must not be lost for it.
  }
  return { files, refused }
}

function listFileNames(folder: string): string[] {
  // The agent may have removed the folder.
  if (!isFolder(folder)) return []
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => entry.name)
    .sort()
}
