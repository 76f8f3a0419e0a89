/**
 * Reads the body of a request: whole, within a limit, as JSON of bounded depth. Every route uses it, so no body can
 * exhaust memory or the stack. A bad body is always a MoleculeError with the reason. The time that a client may take is
 * the server's `requestTimeout`.
 */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { MoleculeError } from '../../../errors.ts'
import { JSON_DEPTH_MAX } from '../../../protocol/schemas.ts'

export const BODY_BYTES_MAX = 1024 * 1024
export const A2A_BODY_BYTES_MAX = 8 * 1024 * 1024
/** Of the inbox routes: a reply as large as a command may print, with the overhead of JSON. */
export const INBOX_BODY_BYTES_MAX = 32 * 1024 * 1024

/** The body as parsed JSON. */
export async function readJson(request: IncomingMessage, bytesMax: number): Promise<unknown> {
  return parseJson(await readBody(request, bytesMax))
}

/** The body as parsed JSON; undefined where it is empty. */
export async function readOptionalJson(request: IncomingMessage, bytesMax: number): Promise<unknown> {
  const body = await readBody(request, bytesMax)
  return body.length === 0 ? undefined : parseJson(body)
}

/** Counts on the bytes, before parsing: to parse 8 MiB of brackets takes a second and 350 MB. */
export function requireShallow(body: Buffer): void {
  if (!isDeeperThan(body, JSON_DEPTH_MAX)) return
  throw new MoleculeError('invalid_request', `the body is nested deeper than ${JSON_DEPTH_MAX} levels`)
}

/** JSON in UTF-8 and of bounded depth. */
export function parseJson(body: Buffer): unknown {
  if (!isUtf8(body)) throw new MoleculeError('invalid_request', 'the body is not valid UTF-8')
  requireShallow(body)
  try {
    return JSON.parse(body.toString('utf8'))
  } catch (cause) {
    throw new MoleculeError('invalid_request', 'the body is not valid JSON', { cause })
  }
}

/** Rejects with `too_large` at the limit, and with `canceled` when the client disconnects before the end. */
export function readBody(request: IncomingMessage, bytesMax: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // Prevents a wait for ever: a client that disconnected while its token was verified sends none of the events below.
    if (request.destroyed) return reject(disconnected())
    // A request that announces its size is refused before a byte of it is read.
    if (Number(request.headers['content-length']) > bytesMax) return reject(tooLarge(bytesMax))
    const chunks: Buffer[] = []
    let bytes = 0
    const stop = () => {
      request.off('data', take)
      request.off('end', end)
      request.off('error', fail)
      request.off('close', fail)
    }
    const take = (chunk: Buffer) => {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes <= bytesMax) return
      stop()
      reject(tooLarge(bytesMax))
    }
    const end = () => {
      stop()
      resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, bytes))
    }
    const fail = (cause?: unknown) => {
      stop()
      reject(disconnected(cause))
    }
    request.on('data', take).on('end', end).on('error', fail).on('close', fail)
  })
}

function disconnected(cause?: unknown): MoleculeError {
  return new MoleculeError('canceled', 'the client disconnected before its request was complete', { cause })
}

function tooLarge(bytesMax: number): MoleculeError {
  return new MoleculeError('too_large', `the body is larger than ${bytesMax} bytes`, {
    details: { limitBytes: bytesMax },
  })
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const OPEN_BRACE = 0x7b
const CLOSE_BRACKET = 0x5d
const CLOSE_BRACE = 0x7d

/** Counts brackets outside strings. It jumps over strings with `indexOf`, so long texts cost little. */
function isDeeperThan(body: Buffer, depthMax: number): boolean {
  let depth = 0
  for (let index = 0; index < body.length; index++) {
    const byte = body[index]
    if (byte === QUOTE) {
      index = endOfString(body, index)
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      if (++depth > depthMax) return true
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      depth--
    }
  }
  return false
}

/** The closing quote of the string that opens at `start`; the body's end where there is none (the parser refuses it). */
function endOfString(body: Buffer, start: number): number {
  let end = body.indexOf(QUOTE, start + 1)
  while (end !== -1 && isEscaped(body, end)) end = body.indexOf(QUOTE, end + 1)
  return end === -1 ? body.length : end
}

function isEscaped(body: Buffer, index: number): boolean {
  let backslashes = 0
  while (body[index - 1 - backslashes] === BACKSLASH) backslashes++
  return backslashes % 2 === 1
}
