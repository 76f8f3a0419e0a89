/**
 * Attachments of a message as files that an agent can open: written into `.molecule/inbox/<turn>` of the working folder
 * before the turn and named in its prompt. Also the way back: a file of the working folder as a part of a reply.
 * Invariant: nothing outside the working folder is written or read, a sender's URL is called only through the guard
 * (client/outbound.ts), and the files of a turn have at most 25 MiB.
 */
import { constants } from 'node:fs'
import { type FileHandle, lstat, mkdir, open, readdir, realpath, rm, writeFile } from 'node:fs/promises'
import { basename, join, relative, resolve, sep } from 'node:path'
import { getMimeType } from 'hono/utils/mime'
import { createOutbound, type Outbound } from '../../../client/outbound.ts'
import type { Clock } from '../../../clock.ts'
import { MoleculeError, toMoleculeError } from '../../../errors.ts'
import type { Part } from '../../../protocol/a2a.ts'
import { extensionOf, numberedFileName, safeFileName } from '../../../protocol/file-name.ts'
import type { RequestPart } from '../../../protocol/request.ts'

export const ATTACHMENT_BYTES_MAX = 25 * 1024 * 1024
/** A message with more attachments fails as `bad_attachment`. */
const ATTACHMENTS_MAX = 64
/** A later turn may read a file again. An older file is removed. */
const KEEP_MS = 30 * 24 * 3600_000
const FETCH_MS_MAX = 120_000

export interface AttachmentOptions {
  readonly workingDir: string
  readonly turnId: string
  /** `BackendContext.outbound`: which URLs may be called. Absent: only public addresses. */
  readonly outbound?: Pick<Outbound, 'send'> | undefined
  readonly clock: Clock
}

export interface AttachedFile {
  /** Absolute. */
  readonly path: string
  readonly name: string
  readonly mediaType: string | undefined
  readonly bytes: number
}

export interface Attachments {
  readonly files: readonly AttachedFile[]
  /** Where the files are; undefined without files. */
  readonly folder?: string
  /** Lines for the end of the prompt: a heading and one line for each file. Empty without files. */
  readonly promptLines: readonly string[]
  /** Removes this turn's files at once. Otherwise they are kept for 30 days. */
  cleanUp(): Promise<void>
}

/**
 * Throws `bad_attachment` if a file cannot be fetched or the files are too large; retryable if a retry may help. Then no
 * file is left on the disk.
 */
export async function writeAttachments(
  parts: readonly RequestPart[],
  options: AttachmentOptions,
  signal: AbortSignal,
): Promise<Attachments> {
  const wanted = parts.filter(({ type }) => type !== 'text')
  if (wanted.length === 0) return { files: [], promptLines: [], cleanUp: () => Promise.resolve() }
  if (wanted.length > ATTACHMENTS_MAX) throw badAttachment(`there are more than ${ATTACHMENTS_MAX} files`)
  const folder = await openTurnFolder(options)
  const cleanUp = () => rm(folder, { recursive: true, force: true })
  const files: AttachedFile[] = []
  try {
    for (const part of wanted) files.push(await writePart(part, { ...options, folder, files }, signal))
  } catch (thrown) {
    await cleanUp()
    throw thrown
  }
  return { files, folder, promptLines: describeFiles(files, options.workingDir), cleanUp }
}

/** The prompt, followed by the list of its attached files. */
export function promptWithFiles(prompt: string, promptLines: readonly string[]): string {
  return promptLines.length === 0 ? prompt : `${prompt}\n\n${promptLines.join('\n')}`
}

/**
 * A file of the working folder as a part of a reply; `path` may be relative to that folder. Throws `forbidden` if the
 * file is really elsewhere, also through a link, and `too_large` above 25 MiB.
 */
export async function collectFile(path: string, workingDir: string): Promise<Part> {
  const folder = await realpath(workingDir)
  const file = await realPathOf(resolve(folder, path))
  if (!isInside(file, folder)) throw new MoleculeError('forbidden', `${path} is not in the working folder`)
  // O_NOFOLLOW: the file may have been replaced by a link since the check. O_NONBLOCK: opening a pipe would block.
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    if (!(await handle.stat()).isFile()) throw new MoleculeError('not_found', `${path} is not a file`)
    const content = await readAtMost(handle, path)
    const filename = safeFileName(basename(file), 'file')
    const mediaType = getMimeType(filename) ?? 'application/octet-stream'
    return { raw: content.toString('base64'), filename, mediaType }
  } finally {
    await handle.close()
  }
}

/** Counts while it reads, because a file may grow after its size was read. */
async function readAtMost(handle: FileHandle, path: string): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of handle.createReadStream({ autoClose: false })) {
    bytes += (chunk as Buffer).length
    if (bytes > ATTACHMENT_BYTES_MAX) {
      const details = { limitBytes: ATTACHMENT_BYTES_MAX }
      throw new MoleculeError('too_large', `${path} is larger than ${ATTACHMENT_BYTES_MAX} bytes`, { details })
    }
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks)
}

async function realPathOf(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch (cause) {
    throw new MoleculeError('not_found', `file ${path} does not exist`, { cause })
  }
}

const isInside = (path: string, folder: string): boolean =>
  path.startsWith(folder.endsWith(sep) ? folder : folder + sep)

/** A new, empty folder for the turn that only this user can read. No folder on the way is a link. */
async function openTurnFolder({ workingDir, turnId, clock }: AttachmentOptions): Promise<string> {
  const inbox = await openMoleculeFolder(workingDir, 'inbox')
  await removeOld(inbox, clock.nowMs() - KEEP_MS)
  const folder = join(inbox, safeFileName(turnId, 'turn'))
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { mode: 0o700 })
  return folder
}

/** The folder `.molecule/<name>` of the working folder. */
export async function openMoleculeFolder(workingDir: string, name: 'inbox' | 'outbox'): Promise<string> {
  const home = join(workingDir, '.molecule')
  await ensureRealFolder(home)
  // The working folder may be a git repository, which must not get these files.
  await writeFile(join(home, '.gitignore'), '*\n', { flag: 'wx' }).catch(ignoreExisting)
  const folder = join(home, name)
  await ensureRealFolder(folder)
  return folder
}

async function ensureRealFolder(folder: string): Promise<void> {
  await mkdir(folder, { mode: 0o700 }).catch(ignoreExisting)
  // An agent may have put a link here: files must not be written to its target.
  if ((await lstat(folder)).isDirectory()) return
  throw new MoleculeError('bad_config', `${folder} is not a folder: remove it`)
}

function ignoreExisting(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error
}

async function removeOld(inbox: string, beforeMs: number): Promise<void> {
  for (const name of await readdir(inbox)) {
    const path = join(inbox, name)
    const stats = await lstat(path).catch(() => undefined)
    if (stats !== undefined && stats.mtimeMs < beforeMs) await rm(path, { recursive: true, force: true })
  }
}

/** `files` are those that were written before. */
async function writePart(
  part: RequestPart,
  { folder, files, outbound }: Pick<AttachmentOptions, 'outbound'> & { folder: string; files: readonly AttachedFile[] },
  signal: AbortSignal,
): Promise<AttachedFile> {
  const name = nameOf(part, files)
  const path = join(folder, name)
  const bytesMax = ATTACHMENT_BYTES_MAX - files.reduce((sum, file) => sum + file.bytes, 0)
  const bytes =
    part.uri === undefined
      ? await writeContent(path, contentOf(part, bytesMax))
      : await download({ url: part.uri, path, bytesMax, outbound: outbound ?? createOutbound() }, signal)
  const mediaType = part.mime_type ?? getMimeType(name)
  return { path, name, mediaType, bytes }
}

function contentOf(part: RequestPart, bytesMax: number): Buffer {
  const content =
    part.type === 'data'
      ? Buffer.from(`${JSON.stringify(part.data ?? null, null, 2)}\n`)
      : Buffer.from(part.bytes ?? '', 'base64')
  if (content.length > bytesMax) throw tooLarge()
  return content
}

async function writeContent(path: string, content: Buffer): Promise<number> {
  await writeFile(path, content, { flag: 'wx', mode: 0o600 })
  return content.length
}

async function download(
  options: { url: string; path: string; bytesMax: number; outbound: Pick<Outbound, 'send'> },
  signal: AbortSignal,
): Promise<number> {
  const { url, path, bytesMax, outbound } = options
  const handle = await open(path, 'wx', 0o600)
  let bytes = 0
  try {
    const answer = await outbound.send({ url, totalMs: FETCH_MS_MAX, bytesMax }, signal)
    if (answer.status < 200 || answer.status > 299) {
      answer.discard()
      const isRetryable = answer.status === 429 || answer.status >= 500
      throw badAttachment(`${hostOf(url)} answered ${answer.status}`, { retryable: isRetryable })
    }
    for await (const chunk of answer.chunks()) {
      await handle.writeFile(chunk)
      bytes += chunk.length
    }
  } catch (thrown) {
    const error = toMoleculeError(thrown)
    if (error.code === 'canceled' || error.code === 'bad_attachment') throw error
    if (error.code === 'too_large') throw tooLarge()
    throw badAttachment(error.message, { retryable: error.retryable, cause: error })
  } finally {
    await handle.close()
  }
  return bytes
}

/** Errors name only the host of a URL, because the rest may contain a signature. */
const hostOf = (url: string): string => new URL(url).host

function nameOf(part: RequestPart, files: readonly AttachedFile[]): string {
  const fallback = `attachment-${files.length + 1}${part.type === 'data' ? '.json' : extensionOf(part.mime_type)}`
  const given = part.filename ?? (part.uri === undefined ? undefined : lastPathSegment(part.uri))
  const name = safeFileName(given, fallback)
  // Some file systems treat `A.txt` and `a.txt` as the same file.
  const taken = new Set(files.map((file) => file.name.toLowerCase()))
  let free = name
  for (let number = 2; taken.has(free.toLowerCase()); number++) free = numberedFileName(name, number)
  return free
}

function lastPathSegment(url: string): string | undefined {
  if (!URL.canParse(url)) return undefined
  const last = new URL(url).pathname.split('/').at(-1) ?? ''
  try {
    return decodeURIComponent(last)
  } catch {
    return last
  }
}

function describeFiles(files: readonly AttachedFile[], workingDir: string): string[] {
  const lines = files.map(({ path, mediaType, bytes }) => {
    const type = mediaType !== undefined && /^[\w.+-]+\/[\w.+-]+/.exec(mediaType)?.[0]
    return `- ${relative(workingDir, path)} (${type ? `${type}, ` : ''}${bytes} bytes)`
  })
  const heading =
    'Files attached to this message, in the working folder (their names and contents come from the sender):'
  return [heading, ...lines]
}

const tooLarge = () => badAttachment(`they are larger than ${ATTACHMENT_BYTES_MAX} bytes`)

function badAttachment(reason: string, more: { retryable?: boolean; cause?: unknown } = {}): MoleculeError {
  return new MoleculeError('bad_attachment', `the attachments of the message cannot be used: ${reason}`, more)
}
