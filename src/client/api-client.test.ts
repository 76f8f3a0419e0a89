import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createApiClient } from './api-client.ts'

/** A client whose platform gives each call the next of these answers, and the last one again and again. */
function setUp(...answers: (object | Response)[]) {
  const asked: string[] = []
  const client = createApiClient({
    url: 'http://p.test/',
    token: 'x',
    async fetch(url, init) {
      asked.push([init?.method, String(url).replace('http://p.test', ''), init?.body].filter(Boolean).join(' '))
      assert.ok(asked.length < 20, 'a list that does not end')
      const [answer = {}] = answers.length > 1 ? answers.splice(0, 1) : answers
      return answer instanceof Response ? answer.clone() : new Response(JSON.stringify(answer))
    },
  })
  return { client, asked }
}

test('PL-10 a call puts its parameters into the path and after the "?", and leaves out those that are not given', async () => {
  const { client, asked } = setUp({ rules: [] })
  await client.call('GET /workspaces/{id}/rules', { id: 'a b/c', after: 'x&y' })
  await client.call('GET /workspaces/{id}/rules', { id: 'w', after: undefined })
  await client.call('DELETE /workspaces/{id}/rules/{rule}', { id: 'w', rule: 'r/1' })
  assert.deepEqual(asked, [
    'GET /workspaces/a%20b%2Fc/rules?after=x%26y',
    'GET /workspaces/w/rules',
    'DELETE /workspaces/w/rules/r%2F1',
  ])
})

test('PL-10 an empty name, or one that a URL takes for a folder, calls no other endpoint', async () => {
  const { client, asked } = setUp({})
  const empty = { code: 'invalid_request', message: '"rule" must not be empty' }
  await assert.rejects(client.call('DELETE /workspaces/{id}/rules/{rule}', { id: 'w', rule: '' }), empty)
  for (const id of ['.', '..'])
    await assert.rejects(client.call('DELETE /tokens/{id}', { id }), {
      code: 'not_found',
      message: `there is nothing called "${id}"`,
    })
  assert.deepEqual(asked, [])
})

test('PL-10 a body is sent as JSON, and an answer without a body is undefined', async () => {
  const { client, asked } = setUp(new Response(null, { status: 204 }))
  assert.equal(await client.call('POST /login', { body: { code: 'c' } }), undefined)
  assert.deepEqual(asked, ['POST /login {"code":"c"}'])
})

test('PL-10 a file is sent as it is, to its path, and with the given headers', async () => {
  const sent: unknown[] = []
  const client = createApiClient({
    url: 'http://p.test',
    token: 'x',
    async fetch(url, { headers, body } = {}) {
      sent.push(String(url), new Headers(headers).get('If-Match'), body)
      return new Response('{"path":"a b/c","size":3}')
    },
  })
  const file = { id: 'w', path: 'a b/c', body: 'new' }
  const written = await client.call('PUT /workspaces/{id}/files/{+path}', file, { headers: { 'If-Match': '"v1"' } })
  assert.deepEqual(written, { path: 'a b/c', size: 3 })
  assert.deepEqual(sent, ['http://p.test/workspaces/w/files/a%20b/c', '"v1"', 'new'])
})

test('PL-23 a list is read page by page to its end', async () => {
  const { client, asked } = setUp({ rules: [1, 2], next: 'two' }, { rules: [], next: 'three' }, { rules: [3] })
  assert.deepEqual(await client.all('GET /workspaces/{id}/rules', 'rules', { id: 'w' }), [1, 2, 3])
  const path = 'GET /workspaces/w/rules'
  assert.deepEqual(asked, [path, `${path}?after=two`, `${path}?after=three`])
})

test('PL-23 a platform that never ends a list is left', async () => {
  let calls = 0
  const endless = async () => new Response(JSON.stringify({ rules: [++calls], next: 'more' }))
  const client = createApiClient({ url: 'http://p.test', token: undefined, fetch: endless })
  const rules = await client.all('GET /workspaces/{id}/rules', 'rules', { id: 'w' })
  assert.equal(rules.length, calls)
})

test('PL-17 a file and an artifact are answered as their text, whatever it looks like', async () => {
  const { client } = setUp(new Response('{"a":1}'))
  assert.equal(await client.call('GET /workspaces/{id}/files/{+path}', { id: 'w', path: 'a b/c' }), '{"a":1}')
  assert.equal(await client.call('GET /tasks/{id}/artifacts/{artifact}', { id: 't', artifact: 'r' }), '{"a":1}')
})

test('the page of a proxy in place of JSON is no answer', async () => {
  const { client } = setUp(new Response('<html>'))
  await assert.rejects(client.call('GET /version'), { code: 'timeout', retryable: true })
})

test('a path that the platform gave is called as it is', async () => {
  const { client, asked } = setUp({})
  await client.follow({ method: 'POST', path: '/x', body: { k: 1 } })
  await client.follow({ method: 'DELETE', path: '/x' })
  assert.deepEqual(asked, ['POST /x {"k":1}', 'DELETE /x'])
})
