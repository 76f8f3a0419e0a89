/** The files of a workspace's configuration folder. */
import { z } from 'zod'
import { contentOf, endpoint, nothing } from './endpoint.ts'
import { checkShape } from './workspaces.ts'

export const listFiles = endpoint('GET /workspaces/{id}/files', {
  access: 'file.read',
  summary: 'The files of the configuration folder',
  success: [200, 'Paths and sizes'],
  answer: z.strictObject({
    files: z.array(z.strictObject({ path: z.string(), size: z.number(), modified_at: z.string() })),
    truncated: z.boolean().describe('There may be more files than are listed.'),
  }),
})

export const readFile = endpoint('GET /workspaces/{id}/files/{+path}', {
  access: 'file.read',
  summary: 'One file',
  success: [200, 'The file, and its version as ETag'],
  answer: contentOf('application/octet-stream'),
})

export const writeFile = endpoint('PUT /workspaces/{id}/files/{+path}', {
  access: 'file.write',
  query: z.object({ dry_run: z.boolean().default(false) }),
  upload: true,
  summary:
    'Write a file; the raw body is its content; dry_run=true only checks it; If-Match refuses when the file has another ETag',
  success: [201, 'Its path and size; 200 when the file existed, and for a dry run, with what it found'],
  answer: z.strictObject({
    path: z.string(),
    size: z.number(),
    ...z.object(checkShape).partial().shape,
  }),
})

export const removeFile = endpoint('DELETE /workspaces/{id}/files/{+path}', {
  access: 'file.write',
  summary: 'Remove a file',
  success: [204, 'Done'],
  answer: nothing,
})

export const fileEndpoints = [listFiles, readFile, writeFile, removeFile] as const
