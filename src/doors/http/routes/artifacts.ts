/**
 * One artifact of a task as a file. Who may see the task over A2A may see its artifacts; other callers receive
 * `not_found`. An agent's file must not run as a page of the platform: it is sent as a download, sandboxed, and under a
 * file name without a path.
 */
import { MoleculeError } from '../../../errors.ts'
import type { Reception } from '../../../inbox/inbox.ts'
import type { Artifact, Part, Task } from '../../../protocol/a2a.ts'
import { extensionOf, safeFileName } from '../../../protocol/file-name.ts'
import type { Identity } from '../../../workspaces/tokens.ts'
import { taskViewsOf } from '../server/auth.ts'
import { route } from './route.ts'

export const artifactRoutes = [
  route({
    method: 'get',
    path: '/tasks/:id/artifacts/:artifact',
    access: 'task.read',
    summary: 'An artifact of a task as a file; "part" chooses one of several parts',
    success: [200, 'The file'],
    async handle({ context, identity }, { reception }) {
      const { id, artifact: artifactId } = context.req.param()
      const task = await findTask(reception, identity, id)
      const artifact = task.artifacts?.find((each) => each.artifactId === artifactId)
      if (artifact === undefined) throw new MoleculeError('not_found', `the task has no artifact ${artifactId}`)
      const index = readIndex(context.req.query('part'), artifact)
      const part = index === undefined ? undefined : artifact.parts[index]
      const { content, type, name } = part === undefined ? asDocument(artifact) : asFile(part, artifact)
      return context.body(new Uint8Array(content), 200, {
        'Content-Type': type,
        'Content-Disposition': disposition(name),
        'Content-Security-Policy': "default-src 'none'; sandbox",
        'Cache-Control': 'no-store',
      })
    },
  }),
]

async function findTask(reception: Reception, identity: Identity, taskId: string): Promise<Task> {
  for (const view of taskViewsOf(identity)) {
    const task = await reception.task(taskId, { ...view, historyLength: 0 })
    if (task !== undefined) return task
  }
  throw new MoleculeError('not_found', `there is no task ${taskId}`)
}

/** The index of the requested part; undefined = the whole artifact, when it has several parts and none was named. */
function readIndex(given: string | undefined, { parts }: Artifact): number | undefined {
  if (given === undefined) return parts.length === 1 ? 0 : undefined
  if (!/^\d{1,6}$/.test(given)) {
    const details = { path: 'part' }
    throw new MoleculeError('invalid_request', 'part must be the number of a part, from 0', { details })
  }
  if (Number(given) < parts.length) return Number(given)
  throw new MoleculeError('not_found', `the artifact has ${parts.length} parts, counted from 0`)
}

interface Download {
  readonly content: Buffer
  readonly type: string
  readonly name: string
}

function asDocument(artifact: Artifact): Download {
  const name = `${safeFileName(artifact.name, 'artifact')}.json`
  return { content: Buffer.from(JSON.stringify(artifact)), type: 'application/json', name }
}

/** A URL part is shown as JSON. It is not fetched and not redirected to, because the agent chose where it leads. */
function asFile(part: Part, { name }: Artifact): Download {
  if (part.raw !== undefined) {
    const type = typeOf(part, 'application/octet-stream')
    return { content: Buffer.from(part.raw, 'base64'), type, name: nameOf(part, name, extensionOf(type)) }
  }
  if (part.text !== undefined) {
    const type = typeOf(part, 'text/plain; charset=utf-8')
    return { content: Buffer.from(part.text), type, name: nameOf(part, name, extensionOf(type)) }
  }
  const content = part.url === undefined ? part.data : part
  return {
    content: Buffer.from(JSON.stringify(content ?? null)),
    type: 'application/json',
    name: nameOf(part.url === undefined ? part : {}, name, '.json'),
  }
}

const MEDIA_TYPE = /^[\w.+-]{1,100}\/[\w.+-]{1,100}(; ?[\w-]{1,30}=[\w.+-]{1,60}){0,3}$/

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
