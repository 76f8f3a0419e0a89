/** Files of this machine as parts of a message. All files of one message together stay below what the platform takes. */
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import { getMimeType } from 'hono/utils/mime'
import { MoleculeError } from '../../errors.ts'
import type { Part } from '../../protocol/a2a.ts'
import { A2A_BODY_BYTES_MAX } from '../../protocol/schemas.ts'
import { formatBytes } from '../terminal/output.ts'

/** A message with more files is refused by the workspace. */
const FILES_MAX = 64
/** Of a body, for the text of the message and everything around it. */
const RESERVED_BYTES = 512 * 1024
/** Of all files together; base64 makes four bytes of three. */
const FILES_BYTES_MAX = Math.floor(((A2A_BODY_BYTES_MAX - RESERVED_BYTES) * 3) / 4)

/**
 * Throws one sentence that names the file if one cannot be read, is no file, or makes the message too large. `attached` are
 * the files that the message has already; they count.
 */
export async function attachFiles(paths: readonly string[], attached: readonly Part[] = []): Promise<Part[]> {
  if (paths.length + attached.length > FILES_MAX)
    throw new MoleculeError('too_large', `a message takes at most ${FILES_MAX} files`)
  const parts: Part[] = []
  let leftBytes = attached.reduce((left, part) => left - partBytes(part), FILES_BYTES_MAX)
  for (const path of paths) {
    const content = await readFileOf(path, leftBytes)
    leftBytes -= content.length
    const filename = basename(resolve(path))
    parts.push({
      raw: content.toString('base64'),
      filename,
      mediaType: getMimeType(filename) ?? 'application/octet-stream',
    })
  }
  return parts
}

/** The size of the file in a part. */
export const partBytes = ({ raw = '' }: Part): number => Buffer.byteLength(raw, 'base64')

async function readFileOf(path: string, bytesMax: number): Promise<Buffer> {
  // O_NONBLOCK: opening a pipe would block.
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((cause: NodeJS.ErrnoException) => {
    const reason = cause.code === 'ENOENT' ? 'does not exist' : `cannot be read (${cause.code})`
    throw new MoleculeError('invalid_request', `the file ${path} ${reason}`, { cause })
  })
  try {
    const stats = await handle.stat()
    if (!stats.isFile()) throw new MoleculeError('invalid_request', `${path} is not a file; attach single files`)
    if (stats.size > bytesMax) throw tooLarge(path, stats.size)
    const content = await handle.readFile()
    // The file may have grown since its size was read.
    if (content.length > bytesMax) throw tooLarge(path, content.length)
    return content
  } finally {
    await handle.close()
  }
}

const tooLarge = (path: string, bytes: number): MoleculeError =>
  new MoleculeError(
    'too_large',
    `${path} (${formatBytes(bytes)}) is too large: the files of a message may have ${formatBytes(FILES_BYTES_MAX)} together`,
  )
