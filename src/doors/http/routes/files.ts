/**
 * The files of a workspace over HTTP: `GET` lists or reads, `PUT` writes the raw body, `DELETE` removes. The path is
 * read from the raw request, because a URL parser would silently resolve `..`, which must be refused.
 */
import type { Context } from 'hono'
import { MoleculeError } from '../../../errors.ts'
import { FILE_BYTES_MAX, FILES_MAX } from '../../../workspaces/workspace-files.ts'
import { readBody } from '../server/body.ts'
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
    success: [200, 'The file'],
    async handle({ context }, { files }) {
      const content = await files.read(context.req.param('id'), filePathOf(context))
      // A script in a file must not run as a page of the platform: the browser downloads it.
      const headers = { 'Content-Type': 'application/octet-stream', 'Content-Disposition': 'attachment' }
      return context.body(new Uint8Array(content), 200, { ...headers, 'Cache-Control': 'no-store' })
    },
  }),
  route({
    method: 'put',
    path: '/workspaces/:id/files/:path{.+}',
    access: 'file.write',
    summary: 'Write a file; the raw body is its content',
    success: [201, 'Its path and size; 200 when the file existed'],
    async handle({ context }, { files }) {
      const path = filePathOf(context)
      const content = await readBody(context.env.incoming, FILE_BYTES_MAX)
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

function filePathOf({ env }: Context<HttpEnv>): string {
  const raw = /^\/workspaces\/[^/?]+\/files\/([^?#]*)/.exec(env.incoming.url ?? '')?.[1] ?? ''
  try {
    return decodeURIComponent(raw)
  } catch (cause) {
    throw new MoleculeError('invalid_request', 'the path is not valid percent-encoded UTF-8', { cause })
  }
}
