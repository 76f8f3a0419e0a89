import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import test from 'node:test'
import { WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openRoutes, recordPart } from '../../../../test/harness/clients/route-calls.ts'
import { MoleculeError } from '../../../errors.ts'
import type { WorkspaceFiles } from '../../../workspaces/workspace-files.ts'

const PATH = `/workspaces/${WORKSPACE_ID}/files`
const CONTENT = Buffer.from('hello')
const VERSION = `"${createHash('sha256').update(CONTENT).digest('hex')}"`

test('PL-17 the list of files says when it is cut at 1,000', async (t) => {
  const entry = { path: 'a.md', size: 3, modifiedAtMs: 1_700_000_000_000 }
  const listed = async (count: number) => {
    const files = recordPart<WorkspaceFiles>({ list: Array.from({ length: count }, () => entry) })
    const call = await openRoutes(t, { files: files.part })
    const { json } = await call(`GET ${PATH}`)
    assert.deepEqual(files.take(), [['list', WORKSPACE_ID]])
    return json
  }
  const one = { path: 'a.md', size: 3, modified_at: '2023-11-14T22:13:20.000Z' }
  assert.deepEqual(await listed(1), { files: [one], truncated: false })
  assert.equal((await listed(999)).truncated, false)
  assert.equal((await listed(1000)).truncated, true)
})

test('PL-17 a file is sent as a download that no cache keeps, with its version', async (t) => {
  const files = recordPart<WorkspaceFiles>({ read: CONTENT })
  const call = await openRoutes(t, { files: files.part })
  const { status, text, headers } = await call(`GET ${PATH}/notes/a%20b.md?x=1`)
  assert.deepEqual([status, text], [200, 'hello'])
  const sent = [headers['content-type'], headers['content-disposition'], headers['cache-control'], headers.etag]
  assert.deepEqual(sent, ['application/octet-stream', 'attachment', 'no-store', VERSION])
  await call(`GET ${PATH}/folder/`)
  assert.deepEqual(files.take(), [
    ['read', WORKSPACE_ID, 'notes/a b.md'],
    ['read', WORKSPACE_ID, 'folder'],
  ])
  const broken = await call(`GET ${PATH}/%E0%A4%A`)
  assert.deepEqual([broken.status, broken.json.error.code], [400, 'invalid_request'])
  assert.deepEqual(files.take(), [])
})

test('PL-17 a file is written whole: 201 when it is new, 200 when it existed; a dry run only checks it', async (t) => {
  for (const isNew of [true, false]) {
    const files = recordPart<WorkspaceFiles>({ write: isNew, check: { ok: false, reason: 'no program' } })
    const call = await openRoutes(t, { files: files.part })
    const written = await call(`PUT ${PATH}/a.md`, { body: CONTENT })
    assert.deepEqual([written.status, written.json], [isNew ? 201 : 200, { path: 'a.md', size: 5 }])
    const checked = await call(`PUT ${PATH}/a.md?dry_run=true`, { body: CONTENT })
    const found = { path: 'a.md', size: 5, ok: false, reason: 'no program', warnings: [] }
    assert.deepEqual([checked.status, checked.json], [200, found])
    assert.deepEqual(files.take(), [
      ['write', WORKSPACE_ID, 'a.md', CONTENT],
      ['check', WORKSPACE_ID, 'a.md', CONTENT],
    ])
  }
})

test('PL-17 a file is removed by its path', async (t) => {
  const files = recordPart<WorkspaceFiles>({ remove: undefined })
  const call = await openRoutes(t, { files: files.part })
  assert.equal((await call(`DELETE ${PATH}/a.md`)).status, 204)
  assert.deepEqual(files.take(), [['remove', WORKSPACE_ID, 'a.md']])
})

test('CV-3 If-Match refuses to overwrite a file that has changed, and writes one that has not', async (t) => {
  const missing = new MoleculeError('not_found', 'there is no file')
  const secret = new MoleculeError('forbidden', 'a secret is never shown')
  const put = async (read: Buffer | Error, version: string) => {
    const files = recordPart<WorkspaceFiles>({ read, write: false })
    const call = await openRoutes(t, { files: files.part })
    const answer = await call(`PUT ${PATH}/a.md`, { body: 'new', headers: { 'If-Match': version } })
    const [first, ...later] = files.take()
    assert.deepEqual(first, ['read', WORKSPACE_ID, 'a.md'])
    return [answer.status, later.length, answer.json.error?.message]
  }
  assert.deepEqual(await put(CONTENT, VERSION), [200, 1, undefined])
  const changed = 'a.md has changed since it was read: read it again'
  assert.deepEqual(await put(CONTENT, '"other"'), [400, 0, changed])
  assert.deepEqual(await put(CONTENT, '""'), [400, 0, changed])
  assert.deepEqual(await put(missing, '""'), [200, 1, undefined])
  assert.deepEqual(await put(missing, VERSION), [400, 0, changed])
  assert.deepEqual(await put(secret, '""'), [403, 0, 'a secret is never shown'])
})
