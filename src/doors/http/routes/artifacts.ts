/**
 * One artifact of a task, as a file: `GET /tasks/:id/artifacts/:artifactId`. The task is seen by those who see it over
 * A2A; for everybody else it does not exist. What an agent made is never shown by a browser as a page of ours: it comes
 * as a download, without scripts, under a name that is only a name.
 */
import { Hono } from 'hono'
import { MoleculeError } from '../../../errors.ts'
import type { Reception, TaskView } from '../../../inbox/inbox.ts'
import type { Artifact, Part, Task } from '../../../protocol/a2a.ts'
import { extensionOf, safeFileName } from '../../../protocol/file-name.ts'
import type { Identity } from '../../../workspaces/tokens.ts'
import type { HttpAuth } from '../server/auth.ts'
import { allow, type HttpEnv } from '../server/guard.ts'

export interface ArtifactRouteOptions {
  readonly reception: Reception
  readonly auth: HttpAuth
}

export function artifactRoutes({ reception, auth }: ArtifactRouteOptions): Hono<HttpEnv> {
  const routes = new Hono<HttpEnv>()
  routes.get('/tasks/:id/artifacts/:artifact', allow(auth, 'task.read'), async (context) => {
    const { id, artifact: artifactId } = context.req.param()
    const task = await findTask(reception, context.get('identity'), id)
    const artifact = task.artifacts?.find((one) => one.artifactId === artifactId)
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
  })
  return routes
}

/** A workspace sees the tasks it was given and those it gave; everybody else who is not a person only the latter. */
async function findTask(reception: Reception, identity: Identity, taskId: string): Promise<Task> {
  for (const view of viewsOf(identity)) {
    const task = await reception.task(taskId, { ...view, historyLength: 0 })
    if (task !== undefined) return task
  }
  throw new MoleculeError('not_found', `there is no task ${taskId}`)
}

function viewsOf({ role, principal, workspaceId }: Identity): TaskView[] {
  if (role === 'admin' || role === 'member' || role === 'viewer') return [{}]
  return role === 'workspace' && workspaceId !== undefined ? [{ workspaceId }, { principal }] : [{ principal }]
}

/** Which part is meant; undefined = the artifact as a whole, where it has several and none was named. */
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

/** A part that is a URL is told, not fetched and not redirected to: where it leads is the agent's word, not ours. */
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

const typeOf = ({ mediaType = '' }: Part, usual: string): string => (MEDIA_TYPE.test(mediaType) ? mediaType : usual)

function nameOf({ filename }: Part, artifactName: string | undefined, extension: string): string {
  return safeFileName(filename ?? artifactName, `artifact${extension}`)
}

/** The plain form for old clients, in ASCII, and the exact one beside it (RFC 6266). */
function disposition(name: string): string {
  const ascii = name.replaceAll(/[^\x20-\x7e]/g, '_').replaceAll(/["\\]/g, '_')
  const exact = encodeURIComponent(name).replaceAll(/['()*!]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`)
  return `attachment; filename="${ascii}"; filename*=UTF-8''${exact}`
}
