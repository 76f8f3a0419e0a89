/**
 * The files of a workspace over HTTP: `GET` lists or reads, `PUT` writes the raw body, `DELETE` removes. The path is
 * read from the raw request, because a URL parser would silently resolve `..`, which must be refused.
 */
import { createHash } from 'node:crypto'
import type { Context } from 'hono'
import { MoleculeError } from '../../../errors.ts'
import { FILE_BYTES_MAX, FILES_MAX, type WorkspaceFiles } from '../../../workspaces/workspace-files.ts'
import { readBody } from '../server/body.ts'
import { readQueryFlag } from '../server/query.ts'
import { type HttpEnv, route } from './route.ts'

export const fileRoutes = [
  route({
    method: 'get',
    path: '/workspaces/:id/files',
    access: 'file.read',
    summary: 'The files of the configuration folder',
    success: [200, 'Paths and sizes'],
    async handle({ context }, { files }) {
      const found = await files.list(context.req.param('id'))
      const shown = found.map(({ path, size, modifiedAtMs }) => ({
        path,
        size,
        modified_at: new Date(modifiedAtMs).toISOString(),
      }))
      return context.json({ files: shown, truncated: found.length >= FILES_MAX })
    },
  }),
  route({
    method: 'get',
    path: '/workspaces/:id/files/:path{.+}',
    access: 'file.read',
    summary: 'One file',
    success: [200, 'The file, and its version as ETag'],
    async handle({ context }, { files }) {
      const content = await files.read(context.req.param('id'), filePathOf(context))
      // A script in a file must not run as a page of the platform: the browser downloads it.
      const headers = { 'Content-Type': 'application/octet-stream', 'Content-Disposition': 'attachment' }
      return context.body(new Uint8Array(content), 200, {
        ...headers,
        ETag: versionOf(content),
      })
    },
  }),
  route({
    method: 'put',
    path: '/workspaces/:id/files/:path{.+}',
    access: 'file.write',
    summary:
      'Write a file; the raw body is its content; dry_run=true only checks it; If-Match refuses when the file has another ETag',
    success: [201, 'Its path and size; 200 when the file existed, and for a dry run, with what it found'],
    async handle({ context, identity }, { files, auth }): Promise<Response> {
      const path = filePathOf(context)
      const { incoming } = context.env
      const content = await readBody(incoming, FILE_BYTES_MAX, auth.openBody(identity, incoming))
      if (readQueryFlag(context, 'dry_run')) {
        const { warnings = [], ...check } = await files.check(context.req.param('id'), path, content)
        return context.json({ path, size: content.length, ...check, warnings })
      }
      await requireVersion(context, files, path)
      const isNew = await files.write(context.req.param('id'), path, content)
      return context.json({ path, size: content.length }, isNew ? 201 : 200)
    },
  }),
  route({
    method: 'delete',
    path: '/workspaces/:id/files/:path{.+}',
    access: 'file.write',
    summary: 'Remove a file',
    success: [204, 'Done'],
    async handle({ context }, { files }) {
      await files.remove(context.req.param('id'), filePathOf(context))
      return context.body(null, 204)
    },
  }),
]

const versionOf = (content: Buffer): string => `"${createHash('sha256').update(content).digest('hex')}"`

/** `If-Match` of a file that must not exist yet. */
const NO_VERSION = '""'

/** Prevents an editor from overwriting what was written after it read the file. */
async function requireVersion(context: Context<HttpEnv>, files: WorkspaceFiles, path: string): Promise<void> {
  const expected = context.req.header('If-Match')
  if (expected === undefined) return
  const found = await files.read(context.req.param('id') ?? '', path).catch((thrown: unknown) => {
    if (thrown instanceof MoleculeError && thrown.code === 'not_found') return undefined
    throw thrown
  })
  if ((found === undefined ? NO_VERSION : versionOf(found)) === expected) return
  throw new MoleculeError('unsupported_operation', `${path} has changed since it was read: read it again`, {
    details: { path },
  })
}

function filePathOf({ env }: Context<HttpEnv>): string {
  const raw = /^\/workspaces\/[^/?]+\/files\/([^?#]*)/.exec(env.incoming.url ?? '')?.[1]?.replace(/\/$/, '') ?? ''
  try {
    return decodeURIComponent(raw)
  } catch (cause) {
    throw new MoleculeError('invalid_request', 'the path is not valid percent-encoded UTF-8', { cause })
  }
}
