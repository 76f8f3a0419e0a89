/** The request of each call of the platform client, and what it makes of the answer. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MemoryCalls } from './memory-calls.ts'
import { createPlatformClient, type PlatformClient } from './platform-client.ts'

/** A client whose platform answers each call with the next of these bodies, and the last one again and again. */
function setUp(...answers: object[]) {
  const asked: string[] = []
  const send: typeof fetch = async (url, init) => {
    asked.push([init?.method, String(url).replace('http://p.test', ''), init?.body].filter(Boolean).join(' '))
    assert.ok(asked.length < 20, 'a list that does not end')
    return new Response(JSON.stringify(answers.length > 1 ? answers.shift() : answers[0]))
  }
  const client = createPlatformClient({ url: 'http://p.test/', token: 'x', fetch: send })
  return { client, asked }
}

type Row = readonly [run: (client: PlatformClient) => Promise<unknown>, request: string, result: unknown]

async function compare(answer: object, rows: readonly Row[]) {
  for (const [run, request, result] of rows) {
    const { client, asked } = setUp(answer)
    assert.deepEqual(await run(client), result, request)
    assert.deepEqual(asked, [request])
  }
}

test('each call about budgets, channels, memories and schedules has its route and body', async () => {
  const answer = { channels: [1], pairings: [2], memories: [3], schedules: [4], task_id: 'task_1' }
  const schedule = { cron: '* * * * *', text: 'hi' }
  const memories: Parameters<MemoryCalls['listMemories']>[1] = { namespace: 'team', limit: 5 }
  const newMemory = { text: 'm', namespace: 'team' } as Parameters<MemoryCalls['addMemory']>[1]
  await compare(answer, [
    [(c) => c.raiseBudget('b/1', 2.5), 'POST /budgets/b%2F1 {"decision":"raise","max_cost_usd":2.5}', undefined],
    [(c) => c.stopBudget('b'), 'POST /budgets/b {"decision":"stop"}', undefined],
    [(c) => c.addChannel({ name: 'n' } as never), 'POST /channels {"name":"n"}', answer],
    [(c) => c.listChannels(), 'GET /channels', [1]],
    [(c) => c.removeChannel('a/b'), 'DELETE /channels/a%2Fb', undefined],
    [(c) => c.bindPlace('a', 'p/q', 'ws'), 'PUT /channels/a/bindings/p%2Fq {"workspace_id":"ws"}', undefined],
    [(c) => c.unbindPlace('a', 'p/q'), 'DELETE /channels/a/bindings/p%2Fq', undefined],
    [(c) => c.listPairings(), 'GET /pairings', [2]],
    [(c) => c.approvePairing('a/b', 'owner'), 'POST /pairings/a%2Fb/approve {"role":"owner"}', answer],
    [(c) => c.denyPairing('a'), 'POST /pairings/a/deny {}', answer],
    [(c) => c.listMemories('w', memories), 'GET /workspaces/w/memories?namespace=team&limit=5', [3]],
    [
      (c) => c.listMemories('w', { ...memories, query: 'a b' }),
      ...(['GET /workspaces/w/memories?namespace=team&limit=5&query=a+b', [3]] as const),
    ],
    [(c) => c.addMemory('w', newMemory), `POST /workspaces/w/memories ${JSON.stringify(newMemory)}`, answer],
    [(c) => c.forgetMemory('w', 'm/1', 'team'), 'DELETE /workspaces/w/memories/m%2F1?namespace=team', undefined],
    [(c) => c.addSchedule('w', schedule), `POST /workspaces/w/schedules ${JSON.stringify(schedule)}`, answer],
    [(c) => c.listSchedules(), 'GET /schedules', [4]],
    [(c) => c.listSchedules('w 1'), 'GET /schedules?workspace=w+1', [4]],
    [(c) => c.changeSchedule('s/1', { paused: true }), 'PATCH /schedules/s%2F1 {"paused":true}', answer],
    [(c) => c.runSchedule('s'), 'POST /schedules/s/run', 'task_1'],
    [(c) => c.removeSchedule('s'), 'DELETE /schedules/s', undefined],
  ])
})

test('each call about dead letters, tokens, asks and rules has its route and body', async () => {
  const answer = { dead_letters: [1], tokens: [2], pending: [3], rules: [4], rule: 5, task_id: 'task_1' }
  const always = '"decision":"allow","always":true'
  await compare(answer, [
    [(c) => c.listDeadLetters('w'), 'GET /workspaces/w/dead-letters', [1]],
    [(c) => c.replayDeadLetter('w', 'd/1'), 'POST /workspaces/w/dead-letters/d%2F1/replay', 'task_1'],
    [(c) => c.discardDeadLetter('w', 'd'), 'DELETE /workspaces/w/dead-letters/d', answer],
    [(c) => c.listPendingAsks(), 'GET /pending', [3]],
    [(c) => c.listPendingAsks('w/1'), 'GET /pending?workspace_id=w%2F1', [3]],
    [(c) => c.answerAsk('a/1', 'deny'), 'POST /pending/a%2F1 {"decision":"deny"}', undefined],
    [(c) => c.allowAlways('a'), `POST /pending/a {${always}}`, 5],
    [(c) => c.allowAlways('a', 'git *'), `POST /pending/a {${always},"pattern":"git *"}`, 5],
    [(c) => c.listRules('w'), 'GET /workspaces/w/rules', [4]],
    [(c) => c.revokeRule('w', 'r/1'), 'DELETE /workspaces/w/rules/r%2F1', undefined],
    [(c) => c.runAction({ method: 'POST', path: '/x', body: { k: 1 } } as never), 'POST /x {"k":1}', answer],
    [(c) => c.runAction({ method: 'DELETE', path: '/x' } as never), 'DELETE /x', answer],
  ])
})

test('PL-23 needs of all pages come with the count of the first page', async () => {
  const pages = () => setUp({ needs_you: [1], count: 3, next: 'n' }, { needs_you: [2, 3], count: 9 })
  const all = pages()
  assert.deepEqual(await all.client.needsYou(), { needs: [1, 2, 3], count: 3 })
  assert.deepEqual(all.asked, ['GET /needs-you', 'GET /needs-you?after=n'])
  const one = pages()
  assert.deepEqual(await one.client.needsYou('w/1'), { needs: [1, 2, 3], count: 3 })
  assert.deepEqual(one.asked, ['GET /needs-you?workspace_id=w%2F1', 'GET /needs-you?workspace_id=w%2F1&after=n'])
})
