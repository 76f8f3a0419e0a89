/**
 * One artifact of a task as a file. An agent's file must not run as a page, a script or a style of the platform: it is sent
 * as a download, sandboxed, under a file name without a path, and with a type that no browser runs.
 */
import type { Context } from 'hono'
import { MoleculeError } from '../../../errors.ts'
import type { Artifact, Part } from '../../../protocol/a2a.ts'
import { extensionOf, safeFileName } from '../../../protocol/file-name.ts'

/** The answer with the whole artifact, or with the part that the caller asks for. */
export function sendArtifact(context: Pick<Context, 'body'>, artifact: Artifact, wanted: string | undefined): Response {
  const index = readIndex(wanted, artifact)
  const part = index === undefined ? undefined : artifact.parts[index]
  const { text, encoding, type, name } = part === undefined ? asDocument(artifact) : asFile(part, artifact)
  return context.body(toStream(slicesOf(text, encoding)), 200, {
    'Content-Type': type,
    'Content-Length': String(Buffer.byteLength(text, encoding)),
    'Content-Disposition': disposition(name),
    'Content-Security-Policy': "default-src 'none'; sandbox",
  })
}

/** Bytes of a file that are made at a time. A multiple of 3 and 4, so that a slice of base64 is whole bytes. */
const SLICE_CHARACTERS = 192 * 1024

/** Makes the next slice of a large file only when the reader has taken the one before. */
function toStream(slices: Iterator<Buffer>): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    pull(controller) {
      const { value, done } = slices.next()
      if (done) controller.close()
      else controller.enqueue(new Uint8Array(value))
    },
  })
}

function* slicesOf(text: string, encoding: Download['encoding']): Generator<Buffer, undefined> {
  for (let start = 0, end = 0; start < text.length; start = end) {
    end = start + SLICE_CHARACTERS
    // Two halves of a character would become two wrong characters.
    if (encoding === 'utf8' && isHighSurrogate(text.charCodeAt(end - 1))) end++
    yield Buffer.from(text.slice(start, end), encoding)
  }
  return undefined
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff

/** The index of the requested part; undefined = the whole artifact, when it has several parts and none was named. */
function readIndex(given: string | undefined, { parts }: Artifact): number | undefined {
  if (given === undefined) return parts.length === 1 ? 0 : undefined
  if (Number(given) < parts.length) return Number(given)
  throw new MoleculeError('not_found', `the artifact has ${parts.length} parts, counted from 0`)
}

interface Download {
  readonly text: string
  readonly encoding: 'base64' | 'utf8'
  readonly type: string
  readonly name: string
}

function asDocument(artifact: Artifact): Download {
  const name = `${safeFileName(artifact.name, 'artifact')}.json`
  return { text: JSON.stringify(artifact), encoding: 'utf8', type: 'application/json', name }
}

/** A URL part is shown as JSON. It is not fetched and not redirected to, because the agent chose where it leads. */
function asFile(part: Part, { name }: Artifact): Download {
  if (part.raw !== undefined) {
    const type = typeOf(part, 'application/octet-stream')
    // A line break inside base64 would shift the slices after it, and count as bytes of the file.
    const text = /[^\w+/=-]/.test(part.raw) ? part.raw.replaceAll(/[^\w+/=-]/g, '') : part.raw
    return { text, encoding: 'base64', type: inertType(type), name: nameOf(part, name, extensionOf(type)) }
  }
  if (part.text !== undefined) {
    const type = typeOf(part, 'text/plain; charset=utf-8')
    return { text: part.text, encoding: 'utf8', type: inertType(type), name: nameOf(part, name, extensionOf(type)) }
  }
  const content = part.url === undefined ? part.data : part
  return {
    text: JSON.stringify(content ?? null),
    encoding: 'utf8',
    type: 'application/json',
    name: nameOf(part.url === undefined ? part : {}, name, '.json'),
  }
}

const MEDIA_TYPE = /^[\w.+-]{1,100}\/[\w.+-]{1,100}(; ?[\w-]{1,30}=[\w.+-]{1,60}){0,3}$/

/** Types that a browser shows and never runs. A picture is shown by the page; as a page of its own it is sandboxed. */
const INERT_TYPE =
  /^(image\/(png|jpeg|gif|webp|avif|svg\+xml)|audio\/[\w.+-]+|video\/[\w.+-]+|text\/(plain|csv|markdown)|application\/(pdf|json|zip|gzip))$/i

/**
 * The page's own policy allows scripts of this origin, so a file of type `text/javascript` could be one. Other text is
 * sent as plain text, and everything else as bytes; the exact type is in the task.
 */
function inertType(type: string): string {
  const [essence = ''] = type.split(';')
  if (INERT_TYPE.test(essence)) return type
  return /^text\//i.test(essence) ? 'text/plain; charset=utf-8' : 'application/octet-stream'
}

const typeOf = ({ mediaType = '' }: Part, fallback: string): string =>
  MEDIA_TYPE.test(mediaType) ? mediaType : fallback

function nameOf({ filename }: Part, artifactName: string | undefined, extension: string): string {
  return safeFileName(filename ?? artifactName, `artifact${extension}`)
}

/** An ASCII name for old clients, and the exact name beside it (RFC 6266). */
function disposition(name: string): string {
  const ascii = name.replaceAll(/[^\x20-\x7e]/g, '_').replaceAll(/["\\]/g, '_')
  const exact = encodeURIComponent(name).replaceAll(/['()*!]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`)
  return `attachment; filename="${ascii}"; filename*=UTF-8''${exact}`
}
