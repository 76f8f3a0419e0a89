import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createApiClient } from './api-client.ts'
import { allowAlways, readNeeds } from './needs.ts'

/** A client whose platform answers each call with the next of these bodies. */
function setUp(...answers: object[]) {
  const asked: string[] = []
  const send: typeof fetch = async (url, init) => {
    asked.push([init?.method, String(url).replace('http://p.test', ''), init?.body].filter(Boolean).join(' '))
    return new Response(JSON.stringify(answers.shift()))
  }
  return { client: createApiClient({ url: 'http://p.test/', token: 'x', fetch: send }), asked }
}

test('PL-23 needs of all pages come with the count of the first page', async () => {
  const pages = () => setUp({ needs_you: [1], count: 3, next: 'n' }, { needs_you: [2, 3], count: 9 })
  const all = pages()
  assert.deepEqual(await readNeeds(all.client), { needs: [1, 2, 3], count: 3 })
  assert.deepEqual(all.asked, ['GET /needs-you', 'GET /needs-you?after=n'])
  const one = pages()
  assert.deepEqual(await readNeeds(one.client, 'w/1'), { needs: [1, 2, 3], count: 3 })
  assert.deepEqual(one.asked, ['GET /needs-you?workspace_id=w%2F1', 'GET /needs-you?workspace_id=w%2F1&after=n'])
})

test('"always" allows the ask and answers with the rule: the exact one, or the one with the pattern', async () => {
  const { client, asked } = setUp({ rule: 5 }, { rule: 6 }, {})
  assert.equal(await allowAlways(client, 'a/1'), 5)
  assert.equal(await allowAlways(client, 'a', 'git *'), 6)
  await assert.rejects(allowAlways(client, 'a'), { code: 'internal' })
  const always = '"decision":"allow","always":true'
  assert.deepEqual(asked.slice(0, 2), [
    `POST /pending/a%2F1 {${always}}`,
    `POST /pending/a {${always},"pattern":"git *"}`,
  ])
})
