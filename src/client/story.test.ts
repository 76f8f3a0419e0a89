import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createApiClient } from './api-client.ts'
import { readStory } from './story.ts'

/** A client whose platform gives each call the next of these parts. */
function setUp(...parts: object[]) {
  const asked: string[] = []
  const client = createApiClient({
    url: 'http://p.test',
    token: 'x',
    async fetch(url) {
      asked.push(String(url).replace('http://p.test', ''))
      return new Response(JSON.stringify(parts.shift()))
    },
  })
  return { client, asked }
}

test('PL-23 a story of several parts has the steps of all, the tree of the first and the state of the last', async () => {
  const { client, asked } = setUp(
    { message_id: 'm', task_state: 'old', steps: [1], tree: { hidden: 1 }, budgets: [7], next: 'a' },
    { message_id: 'm', task_state: 'older', steps: [2], next: 'b' },
    { message_id: 'm', task_state: 'new', steps: [3], tree: { hidden: 9 } },
  )
  const story = { message_id: 'm', task_state: 'new', steps: [1, 2, 3], tree: { hidden: 1 }, budgets: [7] }
  assert.deepEqual(await readStory(client, 'm/1'), story)
  const path = '/messages/m%2F1/story'
  assert.deepEqual(asked, [path, `${path}?after=a`, `${path}?after=b`])
})

test('CL-1 a story of one part is as the platform sends it', async () => {
  const plain = { message_id: 'm', task_state: 'new', steps: [] }
  const story = await readStory(setUp(plain).client, 'm')
  assert.deepEqual(JSON.parse(JSON.stringify(story)), plain)
})
