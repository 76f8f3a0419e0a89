/** The requests of the reads and changes of workspaces, and what they make of the answers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createApiClient } from './api-client.ts'
import {
  changeWorkspace,
  checkNewWorkspace,
  checkWorkspaceChange,
  createWorkspace,
  listWorkspaces,
  readVersionedFile,
  readWorkspaceFile,
} from './workspaces.ts'

/** A client whose platform gives each call the next of these answers, and the last one again and again. */
function setUp(...answers: (() => Response | Promise<Response>)[]) {
  const asked: string[] = []
  const client = createApiClient({
    url: 'http://p.test/',
    token: 'x',
    async fetch(url, init) {
      asked.push([init?.method, String(url).replace('http://p.test', ''), init?.body].filter(Boolean).join(' '))
      const [answer = assert.fail('one call too many')] = answers.length > 1 ? answers.splice(0, 1) : answers
      return await answer()
    },
  })
  return { client, asked }
}

const json = (value: unknown) => () => new Response(JSON.stringify(value))
const refusal = (code: string, status: number) => () =>
  new Response(JSON.stringify({ error: { code, message: 'no' } }), { status })

test('PL-23 the workspaces of all pages are one list', async () => {
  const { client, asked } = setUp(json({ workspaces: [1], next: 'a&b' }), json({ workspaces: [2] }))
  assert.deepEqual(await listWorkspaces(client), [1, 2])
  assert.deepEqual(asked, ['GET /workspaces?limit=1000', 'GET /workspaces?limit=1000&after=a%26b'])
})

test('a workspace is created and changed with the given fields', async () => {
  const { client, asked } = setUp(json({ id: 'w' }))
  assert.deepEqual(await createWorkspace(client, { name: 'n', role: undefined }), { id: 'w' })
  assert.deepEqual(await changeWorkspace(client, 'w/1', { name: 'n' }), { id: 'w' })
  assert.deepEqual(asked, ['POST /workspaces {"name":"n"}', 'PATCH /workspaces/w%2F1 {"name":"n"}'])
})

test('a dry run asks for a check alone, and its answer is never taken for a workspace', async () => {
  const check = { ok: false, reason: 'no program', warnings: [] }
  const { client, asked } = setUp(json(check))
  assert.deepEqual(await checkNewWorkspace(client, { name: 'n' }), check)
  assert.deepEqual(await checkWorkspaceChange(client, 'w', { name: 'n' }), check)
  assert.deepEqual(asked, [
    'POST /workspaces?dry_run=true {"name":"n"}',
    'PATCH /workspaces/w?dry_run=true {"name":"n"}',
  ])
  await assert.rejects(createWorkspace(client, { name: 'n' }), { code: 'internal' })
  await assert.rejects(changeWorkspace(client, 'w', {}), { code: 'internal' })
  const changed = setUp(json({ id: 'w' })).client
  await assert.rejects(checkNewWorkspace(changed, { name: 'n' }), { code: 'internal' })
  await assert.rejects(checkWorkspaceChange(changed, 'w', {}), { code: 'internal' })
})

test('a file is read as text, with its version where it is asked for; a missing file is no error', async () => {
  const found = () => new Response('{"a":1}', { headers: { ETag: '"v1"' } })
  assert.equal(await readWorkspaceFile(setUp(found).client, 'w', 'a/b'), '{"a":1}')
  assert.deepEqual(await readVersionedFile(setUp(found).client, 'w', 'a/b c'), { text: '{"a":1}', version: '"v1"' })
  const bare = setUp(() => new Response(''))
  assert.deepEqual(await readVersionedFile(bare.client, 'w', 'a/b c'), { text: '', version: '' })
  assert.deepEqual(bare.asked, ['GET /workspaces/w/files/a/b%20c'])
  const missing = refusal('not_found', 404)
  assert.equal(await readWorkspaceFile(setUp(missing).client, 'w', 'a'), undefined)
  assert.deepEqual(await readVersionedFile(setUp(missing).client, 'w', 'a'), { text: undefined, version: '""' })
  await assert.rejects(readWorkspaceFile(setUp(refusal('forbidden', 403)).client, 'w', 'a'), { code: 'forbidden' })
  const down = setUp(() => Promise.reject(new Error('x'))).client
  await assert.rejects(readVersionedFile(down, 'w', 'a'), { code: 'timeout' })
})
