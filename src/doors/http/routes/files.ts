/**
 * The files of a workspace over HTTP: `GET` lists or reads, `PUT` writes the raw body, `DELETE` removes. The path is
 * read from the raw request, because a URL parser would silently resolve `..`, which must be refused.
 */

import { createHash } from 'node:crypto'
import type { Context } from 'hono'
import { listFiles, readFile, removeFile, writeFile } from '../../../api/files.ts'
import { NO_FILE_VERSION } from '../../../client/workspaces.ts'
import { MoleculeError } from '../../../errors.ts'
import { instant } from '../../../views/instant.ts'
import { FILE_BYTES_MAX, FILES_MAX, type WorkspaceFiles } from '../../../workspaces/workspace-files.ts'
import { readBody } from '../server/body.ts'
import { type HttpEnv, serve } from './route.ts'
import { checkAnswer } from './workspaces.ts'

export const fileRoutes = [
  serve(listFiles, async ({ params }, { files }) => {
    const found = await files.list(params.id)
    const shown = found.map(({ path, size, modifiedAtMs }) => ({
      path,
      size,
      modified_at: instant(modifiedAtMs),
    }))
    return { files: shown, truncated: found.length >= FILES_MAX }
  }),
  serve(readFile, async ({ context, params }, { files }) => {
    const content = await files.read(params.id, filePathOf(context))
    // A script in a file must not run as a page of the platform: the browser downloads it.
    const headers = { 'Content-Type': 'application/octet-stream', 'Content-Disposition': 'attachment' }
    return context.body(new Uint8Array(content), 200, { ...headers, ETag: versionOf(content) })
  }),
  serve(writeFile, async ({ context, params, query, identity }, { files, auth }) => {
    const path = filePathOf(context)
    const { incoming } = context.env
    const content = await readBody(incoming, FILE_BYTES_MAX, auth.openBody(identity, incoming))
    const size = content.length
    if (query.dry_run) {
      context.status(200)
      return { path, size, ...checkAnswer(await files.check(params.id, path, content)) }
    }
    await requireVersion(context.req.header('If-Match'), { id: params.id, path }, files)
    const isNew = await files.write(params.id, path, content)
    if (!isNew) context.status(200)
    return { path, size }
  }),
  serve(removeFile, async ({ context, params }, { files }) => {
    await files.remove(params.id, filePathOf(context))
  }),
]

const versionOf = (content: Buffer): string => `"${createHash('sha256').update(content).digest('hex')}"`

/** Prevents an editor from overwriting what was written after it read the file. */
async function requireVersion(
  expected: string | undefined,
  { id, path }: { readonly id: string; readonly path: string },
  files: WorkspaceFiles,
): Promise<void> {
  if (expected === undefined) return
  const found = await files.read(id, path).catch((thrown: unknown) => {
    if (thrown instanceof MoleculeError && thrown.code === 'not_found') return undefined
    throw thrown
  })
  if ((found === undefined ? NO_FILE_VERSION : versionOf(found)) === expected) return
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
