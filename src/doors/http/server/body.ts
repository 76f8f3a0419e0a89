/**
 * Reads the body of a request: whole, within a limit, as JSON of bounded depth and number of values. Every route uses
 * it, so no body can exhaust memory or the stack, or hold the event loop for long. A bad body is always a MoleculeError
 * with the reason. The time that a client may take is the server's `requestTimeout`. `open-bodies.ts` counts what has
 * arrived while the body is incomplete.
 */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { MoleculeError } from '../../../errors.ts'
import { JSON_DEPTH_MAX } from '../../../protocol/schemas.ts'
import type { OpenBody } from './open-bodies.ts'

export const BODY_BYTES_MAX = 1024 * 1024
/** Of routes that need no token. */
export const STRANGER_BODY_BYTES_MAX = 4096

/**
 * Members of objects and items of arrays in a body; one more is refused. To parse 560,000 keys takes 680 ms, and to
 * check 9,000 settings of a workspace takes 120 ms.
 */
const JSON_VALUES_MAX = 2000
/** Of A2A, which stores what it is sent and checks little: to parse 10,000 values takes up to 22 ms. */
export const A2A_JSON_VALUES_MAX = 10_000

/** Counts on the bytes, before parsing: to parse 8 MiB of brackets takes a second and 350 MB. */
export function requireSimple(body: Buffer, valuesMax = JSON_VALUES_MAX): void {
  const problem = problemOf(body, valuesMax)
  if (problem !== undefined) throw new MoleculeError('invalid_request', problem)
}

/** The steps of work on a body up to this size are short enough to run one after the other. */
export const SMALL_BODY_BYTES_MAX = 256 * 1024

/** Between two steps of work on a large body: other callers run first. */
export const letOthersRun = (): Promise<void> => nextTurn()

/** JSON in UTF-8, of bounded depth and number of values. */
export async function parseJson(body: Buffer, valuesMax?: number): Promise<unknown> {
  if (!isUtf8(body)) throw new MoleculeError('invalid_request', 'the body is not valid UTF-8')
  requireSimple(body, valuesMax)
  if (body.length > SMALL_BODY_BYTES_MAX) await letOthersRun()
  try {
    return JSON.parse(body.toString('utf8'))
  } catch (cause) {
    throw new MoleculeError('invalid_request', 'the body is not valid JSON', { cause })
  }
}

/**
 * Rejects with `too_large` at the limit, with the error of `open` past a limit of its caller, and with `canceled` when
 * the client disconnects before the end.
 */
export function readBody(request: IncomingMessage, bytesMax: number, open: () => OpenBody): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // Prevents a wait for ever: a client that disconnected while its token was verified sends none of the events below.
    if (request.destroyed) return reject(disconnected())
    // A request that announces its size is refused before a byte of it is read.
    if (Number(request.headers['content-length']) > bytesMax) return reject(tooLarge(bytesMax))
    const count = open()
    const received = createReceived()
    const stop = () => {
      count.close()
      request.off('data', take)
      request.off('end', end)
      request.off('error', fail)
      request.off('close', fail)
    }
    const take = (chunk: Buffer) => {
      try {
        count.add(chunk.length)
        if (received.add(chunk) > bytesMax) throw tooLarge(bytesMax)
      } catch (error) {
        stop()
        reject(error)
      }
    }
    const end = () => {
      stop()
      resolve(received.bytes())
    }
    const fail = (cause?: unknown) => {
      stop()
      reject(disconnected(cause))
    }
    request.on('data', take).on('end', end).on('error', fail).on('close', fail)
  })
}

/**
 * The bytes so far, in one buffer that doubles. Prevents unbounded memory: a list of chunks takes some hundred bytes for
 * each, and a client may send a body in chunks of one byte. The announced length is not trusted, so it reserves nothing.
 */
function createReceived(): { add(chunk: Buffer): number; bytes(): Buffer } {
  let buffer: Buffer = Buffer.alloc(0)
  let length = 0
  return {
    add(chunk) {
      const before = length
      length += chunk.length
      // Most bodies are one chunk, which is not copied.
      if (before === 0) buffer = chunk
      else {
        if (length > buffer.length) {
          const larger = Buffer.allocUnsafeSlow(2 ** Math.ceil(Math.log2(length)))
          buffer.copy(larger, 0, 0, before)
          buffer = larger
        }
        chunk.copy(buffer, before)
      }
      return length
    },
    bytes: () => buffer.subarray(0, length),
  }
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
const COMMA = 0x2c
const OPEN_BRACKET = 0x5b
const OPEN_BRACE = 0x7b
const CLOSE_BRACKET = 0x5d
const CLOSE_BRACE = 0x7d

/** Counts brackets and commas outside strings. */
function problemOf(body: Buffer, valuesMax: number): string | undefined {
  let depth = 0
  let values = 1
  for (let index = 0; index < body.length; index++) {
    const byte = body[index]
    if (byte === QUOTE) {
      index = endOfString(body, index)
    } else if (byte === COMMA) {
      values++
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      values++
      if (++depth > JSON_DEPTH_MAX) return `the body is nested deeper than ${JSON_DEPTH_MAX} levels`
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      depth--
    }
    if (values > valuesMax) return `the body has more than ${valuesMax} values; send it as one text`
  }
  return undefined
}

/**
 * The closing quote of the string that opens at `start`; the body's end where there is none (the parser refuses it).
 * `indexOf` jumps over a long text. A text with escapes is read byte by byte: to jump from one escaped quote to the next
 * takes a second for 8 MiB of them.
 */
function endOfString(body: Buffer, start: number): number {
  const end = body.indexOf(QUOTE, start + 1)
  if (end === -1) return body.length
  if (body[end - 1] !== BACKSLASH) return end
  for (let index = start + 1; index < body.length; index++) {
    if (body[index] === BACKSLASH) index++
    else if (body[index] === QUOTE) return index
  }
  return body.length
}
