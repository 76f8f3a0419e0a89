/**
 * A workspace's files over HTTP: `GET` lists or reads, `PUT` writes the body as it is, `DELETE` removes. The path is
 * taken from the request as it was sent, because a URL parser would quietly resolve what must be refused.
 */
import { type Context, Hono } from 'hono'
import { MoleculeError } from '../../../errors.ts'
import { FILE_BYTES_MAX, FILES_MAX, type WorkspaceFiles } from '../../../workspaces/workspace-files.ts'
import type { HttpAuth } from '../server/auth.ts'
import { readBody } from '../server/body.ts'
import { allow, type HttpEnv } from '../server/guard.ts'

export interface FileRouteOptions {
  readonly files: WorkspaceFiles
  readonly auth: HttpAuth
}

export function fileRoutes({ files, auth }: FileRouteOptions): Hono<HttpEnv> {
  const routes = new Hono<HttpEnv>()
  const at = '/workspaces/:id/files'
  routes.get(at, allow(auth, 'file.read'), async (context) => {
    const found = await files.list(context.req.param('id'))
    const shown = found.map(({ path, size, modifiedAtMs }) => ({
      path,
      size,
      modified_at: new Date(modifiedAtMs).toISOString(),
    }))
    return context.json({ files: shown, truncated: found.length >= FILES_MAX })
  })
  routes.get(`${at}/:path{.+}`, allow(auth, 'file.read'), async (context) => {
    const content = await files.read(context.req.param('id'), filePathOf(context))
    // Never shown by a browser as a page of ours: whoever wrote the file is not the platform.
    const headers = { 'Content-Type': 'application/octet-stream', 'Content-Disposition': 'attachment' }
    return context.body(new Uint8Array(content), 200, { ...headers, 'Cache-Control': 'no-store' })
  })
  routes.put(`${at}/:path{.+}`, allow(auth, 'file.write'), async (context) => {
    const path = filePathOf(context)
    const content = await readBody(context.env.incoming, FILE_BYTES_MAX)
    const isNew = await files.write(context.req.param('id'), path, content)
    return context.json({ path, size: content.length }, isNew ? 201 : 200)
  })
  routes.delete(`${at}/:path{.+}`, allow(auth, 'file.write'), async (context) => {
    await files.remove(context.req.param('id'), filePathOf(context))
    return context.body(null, 204)
  })
  return routes
}

function filePathOf(context: Context<HttpEnv>): string {
  const raw = /^\/workspaces\/[^/?]+\/files\/([^?#]*)/.exec(context.env.incoming.url ?? '')?.[1] ?? ''
  try {
    return decodeURIComponent(raw)
  } catch (cause) {
    throw new MoleculeError('invalid_request', 'the path is not valid percent-encoded UTF-8', { cause })
  }
}
