/**
 * What the page reads, on a platform with PostgreSQL: the other end-to-end tests run on SQLite, and a statement can be
 * right on one database and wrong on the other. Each answer is compared with its schema by the harness.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { NeedView } from '../../src/client/needs.ts'
import { CLAUDE_LOGGED_IN, createFakeProgram } from '../fakes/agents/fake-program.ts'
import { startTelegram } from '../fakes/telegram/telegram.ts'
import {
  type PlatformUnderTest,
  replyText,
  sendWithoutWaiting,
  startPlatform,
  waitForFinalTask,
} from '../harness/platform.ts'
import { startPostgres, type TestPostgres } from '../harness/stores/postgres.ts'
import { waitUntil } from '../harness/wait.ts'

const { path: claude } = createFakeProgram('claude')
const ADA = { id: '1001', name: 'Ada', isBot: false }
type Fields = Record<string, unknown>

describe('PostgreSQL behind the page', () => {
  let postgres: TestPostgres
  let platform: PlatformUnderTest
  before(async () => {
    postgres = await startPostgres()
    platform = await startPlatform({ env: CLAUDE_LOGGED_IN, database: await postgres.url() })
  })
  after(async () => {
    await platform.dispose()
    await postgres.stop()
  })

  const get = async (path: string) => {
    const { status, body } = await platform.request('GET', path)
    assert.equal(status, 200, `${path}: ${JSON.stringify(body)}`)
    return body
  }
  const make = async (workspace: object): Promise<string> => {
    const { status, body } = await platform.request('POST', '/workspaces', workspace)
    assert.equal(status, 201, JSON.stringify(body))
    return body.id
  }
  const makeMock = (name: string, runtimeConfig: object) =>
    make({ name, runtime: 'mock', runtime_config: runtimeConfig })
  const cardOf = async (id: string) => (await get('/workspaces')).workspaces.find((one: Fields) => one['id'] === id)
  const needsOf = async (id: string): Promise<NeedView[]> => (await get(`/needs-you?workspace_id=${id}`)).needs_you
  const act = async (need: NeedView | undefined, name: string) => {
    const action = need?.actions.find((one) => one.name === name) ?? assert.fail(`no ${name} in ${need?.kind}`)
    const { status, body } = await platform.request(action.method, action.path, action.body)
    assert.ok(status < 300, `${status} ${JSON.stringify(body)}`)
    return body
  }

  test('CV-1 CV-2 CV-6 a failed message is on the card, in the chat, in the activity and among the needs, until it is handled', async () => {
    const id = await platform.exec('echo no >&2; exit 3', { name: 'failing', max_attempts: 1 })
    const task = await platform.send(id, 'back up the shop', { contextId: 'nightly' })
    assert.deepEqual((await cardOf(id)).needs_you, { count: 1, reason: 'a message failed for good' })
    const { messages } = await get(`/workspaces/${id}/conversations/nightly`)
    const [{ state, handled, reason, text }] = messages
    assert.deepEqual([messages.length, state, handled, text], [1, 'failed', false, 'back up the shop'])
    const [need, ...more] = await needsOf(id)
    assert.deepEqual([need?.kind, need?.task_id, need?.text, more], ['dead_letter', task.id, 'back up the shop', []])
    assert.ok(need?.reason.startsWith('a message failed for good: ') && reason.length > 0)
    const [dead] = (await get(`/workspaces/${id}/dead-letters`)).dead_letters
    assert.equal(dead.id, need?.id)
    const { activity } = await get(`/workspaces/${id}/activity?newest=true&limit=50`)
    assert.equal(activity.filter((entry: Fields) => entry['type'] === 'status').at(-1).state, 'TASK_STATE_FAILED')
    await act(need, 'replay')
    await waitUntil(async () => (await needsOf(id)).some((one) => one.id !== need?.id), 'the replay fails too')
    const [again, ...others] = await needsOf(id)
    assert.deepEqual(others, [])
    await act(again, 'discard')
    assert.deepEqual([await needsOf(id), (await cardOf(id)).needs_you], [[], null])
    const [replayed] = (await get(`/workspaces/${id}/conversations/nightly`)).messages
    assert.equal(replayed.handled, true)
  })

  test('CV-2 conversations are listed by their last change, in pages, and found by their words', async () => {
    const id = await make({ name: 'Ada', runtime: 'claude-code', runtime_config: { bin: claude } })
    const file = { raw: Buffer.from('hello').toString('base64'), filename: 'note.txt', mediaType: 'text/plain' }
    await platform.send(id, '!tool List the files of the shop', { contextId: 'files' })
    await platform.send(id, '', { contextId: 'note', parts: [{ text: 'keep 100% of_it' }, file] })
    for (const text of ['one', 'two', 'three']) await platform.send(id, `say ${text}`, { contextId: 'counting' })
    await platform.send(id, 'and the last line', { contextId: 'files' })
    const list = (query = '') => get(`/workspaces/${id}/conversations${query}`)
    const { conversations } = await list()
    assert.deepEqual(
      conversations.map((one: Fields) => [one['context_id'], one['title'], one['state'], one['messages']]),
      [
        ['files', '!tool List the files of the shop', 'answered', 2],
        ['counting', 'say one', 'answered', 3],
        ['note', 'keep 100% of_it', 'answered', 1],
      ],
    )
    const pages = [await list('?limit=1')]
    for (let { next } = pages[0]; next !== undefined; next = pages.at(-1).next) {
      pages.push(await list(`?limit=1&after=${next}`))
    }
    assert.deepEqual(
      pages.flatMap((page) => page.conversations),
      conversations,
    )
    const found = async (search: string) =>
      (await list(`?search=${encodeURIComponent(search)}`)).conversations.map((one: Fields) => one['context_id'])
    assert.deepEqual(await found('list THE files'), ['files'])
    assert.deepEqual(await found('100% of_'), ['note'])
    assert.deepEqual(await found('100%of_'), [])
    assert.deepEqual(await found('messageId'), [])

    const { messages, seq } = await get(`/workspaces/${id}/conversations/counting`)
    assert.deepEqual(
      messages.map((one: Fields) => [one['n'], one['text'], one['state']]),
      ['one', 'two', 'three'].map((text, index) => [index + 1, `say ${text}`, 'answered']),
    )
    assert.equal(seq, (await get(`/workspaces/${id}/activity?newest=true&limit=1`)).next)
    const latest = await get(`/workspaces/${id}/conversations/counting?limit=2`)
    assert.deepEqual([latest.messages, latest.before], [messages.slice(1), 2])
    const earlier = await get(`/workspaces/${id}/conversations/counting?before=2`)
    assert.deepEqual([earlier.messages, earlier.before], [messages.slice(0, 1), undefined])
    const [{ tools, reply, usage, duration_ms: durationMs }] = (await get(`/workspaces/${id}/conversations/files`))
      .messages
    assert.deepEqual([tools.length, tools[0].name, usage.turns], [1, 'mcp__lab__ping_tool', 1])
    assert.ok(reply.text.length > 0 && durationMs >= 0)
    const [{ attachments }] = (await get(`/workspaces/${id}/conversations/note`)).messages
    assert.deepEqual(attachments, [{ name: 'note.txt', media_type: 'text/plain', bytes: 5, part: 1 }])
    assert.ok(Date.parse((await cardOf(id)).last_answered_at) > 0)
  })

  test('CV-2 a chat shows the running message with its partial reply, and the place of those that wait', async () => {
    const id = await platform.exec('echo begun; sleep 600', { name: 'slow', runtime_config: { stream: 'true' } })
    const send = async (text: string) => {
      const message = { messageId: `slow-${text}`, role: 'ROLE_USER', parts: [{ text }], contextId: 'chat' }
      const { body } = await platform.rpc(id, 'SendMessage', { message, configuration: { returnImmediately: true } })
      return body.result.task.id as string
    }
    const [running, waiting] = [await send('a'), await send('b')]
    const read = async () => (await get(`/workspaces/${id}/conversations/chat`)).messages
    await waitUntil(async () => (await read())[0].reply?.text.includes('begun'), 'the partial reply')
    const [first, second] = await read()
    assert.deepEqual([first.state, first.reply.partial, second.state, second.place], ['running', true, 'queued', 1])
    assert.match(second.reason, /^waiting behind message/)
    const card = await cardOf(id)
    assert.deepEqual([card.current_task, card.running, card.queue_depth], ['a', 1, 1])
    await platform.rpc(id, 'CancelTask', { id: waiting })
    await platform.rpc(id, 'CancelTask', { id: running })
    await waitUntil(async () => (await read())[0].state === 'stopped', 'the running message is stopped')
  })

  test('PL-24 CV-6 a rule is made by an answer, allows, is listed with its use, and is revoked', async () => {
    const id = await make({ name: 'Bea', runtime: 'claude-code', runtime_config: { bin: claude } })
    const task = await platform.send(id, '!ask npm test')
    const [need, ...more] = await needsOf(id)
    assert.deepEqual([need?.kind, need?.permission?.would_cover?.pattern, more], ['permission', 'npm test', []])
    assert.equal((await cardOf(id)).needs_you.count, 1)
    const { rule: made } = await act(need, 'always')
    assert.equal((await waitForFinalTask(platform, id, task.id)).status.state, 'TASK_STATE_COMPLETED')
    assert.equal((await platform.send(id, '!ask npm test')).status.state, 'TASK_STATE_COMPLETED')
    const { rules } = await get(`/workspaces/${id}/rules`)
    assert.deepEqual(
      rules.map((one: Fields) => [one['id'], one['pattern'], one['made_by'], one['used']]),
      [[made.id, 'npm test', 'admin', 1]],
    )
    assert.equal((await platform.request('DELETE', `/workspaces/${id}/rules/${made.id}`)).status, 204)
    assert.deepEqual((await get(`/workspaces/${id}/rules`)).rules, [])
    assert.equal((await platform.send(id, '!ask npm test')).status.state, 'TASK_STATE_AUTH_REQUIRED')
    const { activity } = await get(`/workspaces/${id}/activity?type=rule`)
    assert.deepEqual(
      activity.map((entry: Fields) => entry['text']),
      ['made', 'revoked'],
    )
    await act((await needsOf(id))[0], 'deny')
    await waitUntil(async () => (await needsOf(id)).length === 0, 'no permission waits')
  })

  test('TW-10 RT-13 a spent budget of a day and of a message is asked about, and a raise lets its messages go on', async () => {
    const daily = await makeMock('daily', { cost: '0.5', max_cost_usd_per_day: 1 })
    for (const text of ['one', 'two']) await platform.send(daily, text)
    const third = await sendWithoutWaiting(platform, daily, 'three')
    await waitUntil(async () => (await needsOf(daily)).length === 1, 'the owner is asked about the day')
    const [need] = await needsOf(daily)
    const text = "today's budget of this workspace, $1.00, is spent ($1.00); 1 message waits"
    assert.deepEqual([need?.kind, need?.reason, need?.budget?.cost_usd], ['budget', text, 1])
    assert.equal((await cardOf(daily)).needs_you.count, 1)
    await act(need, 'raise')
    assert.equal(replyText(await waitForFinalTask(platform, daily, third)), 'echo: three')
    assert.deepEqual(await needsOf(daily), [])

    const lead = await platform.exec('for n in 1 2 3; do a2a delegate spender "job $n"; done', {
      name: 'boss',
      runtime_config: { pass_meta: 'true', timeout: '110s' },
      max_attempts: 1,
    })
    await makeMock('spender', { cost: '0.02', reply: 'did %s' })
    const metadata = { molecule_delegation: { max_cost_usd: 0.03 } }
    const message = { messageId: 'with-a-budget', role: 'ROLE_USER', parts: [{ text: 'go' }], metadata }
    const { body } = await platform.rpc(lead, 'SendMessage', { message, configuration: { returnImmediately: true } })
    await waitUntil(async () => (await needsOf(lead)).length === 1, 'the owner is asked about the message')
    const [spent] = (await get('/pending')).budgets
    assert.deepEqual([spent.workspace_id, spent.max_cost_usd, spent.cost_usd, spent.waiting], [lead, 0.03, 0.04, 1])
    await act((await needsOf(lead))[0], 'raise')
    const ended = await waitForFinalTask(platform, lead, body.result.task.id)
    assert.match(replyText(ended) ?? '', /did job 1\ndid job 2\ndid job 3/)
  })

  test('CV-4 TW-5 the delegations of a workspace are trees, from each of its sides and in pages', async () => {
    const options = { runtime_config: { pass_meta: 'true', timeout: '110s' }, max_attempts: 1 }
    const lead = await platform.exec('a2a delegate helper go', { name: 'lead', ...options })
    const helper = await makeMock('helper', { cost: '0.25', reply: 'done' })
    for (const text of ['go', 'go again']) await platform.send(lead, text)
    const read = (id: string, query = '') => get(`/workspaces/${id}/delegations${query}`)
    const { trees, next } = await read(lead)
    assert.deepEqual([trees.length, next], [2, undefined])
    for (const { tasks } of trees) {
      assert.deepEqual(
        tasks.map((task: Fields) => [task['workspace_name'], task['depth'], task['state']]),
        [
          ['lead', 0, 'TASK_STATE_COMPLETED'],
          ['helper', 1, 'TASK_STATE_COMPLETED'],
        ],
      )
      const [parent, child] = tasks
      assert.deepEqual([child.parent_task_id, child.usage.cost_usd], [parent.task_id, 0.25])
      assert.ok(Date.parse(parent.started_at) <= Date.parse(child.started_at))
    }
    assert.deepEqual((await read(helper)).trees, trees)
    const first = await read(lead, '?limit=1')
    assert.deepEqual(first.trees, [trees[0]])
    assert.deepEqual((await read(lead, `?limit=5&after=${first.next}`)).trees, [trees[1]])
  })

  test('RT-13 CV-4 use is shown by day, workspace, conversation and message, as numbers', async () => {
    const id = await makeMock('counted', { usage: true, cost: '0.125' })
    for (const contextId of ['one', 'one', 'two']) await platform.send(id, 'hello', { contextId })
    const own = await get(`/workspaces/${id}/usage`)
    assert.deepEqual([own.total.turns, own.total.cost_usd, own.total.unknown_cost_turns], [3, 0.375, 0])
    assert.equal(typeof own.total.input_tokens, 'number')
    assert.equal(typeof own.total.duration_ms, 'number')
    assert.deepEqual(
      own.days.map(({ day: _day, ...sum }: Fields) => sum),
      [own.total],
    )
    assert.match(own.days[0].day, /^\d{4}-\d\d-\d\d$/)
    assert.deepEqual(
      own.conversations.map((each: Fields) => [each['context_id'], each['turns'], each['cost_usd']]),
      [
        ['two', 1, 0.125],
        ['one', 2, 0.25],
      ],
    )
    assert.deepEqual([own.messages.length, own.messages[0].turns], [3, 1])
    const all = await get('/usage?days=2')
    const listed = all.workspaces.find((each: Fields) => each['workspace_id'] === id)
    assert.deepEqual(listed, { workspace_id: id, name: 'counted', ...own.total })
    assert.equal(
      all.total.turns,
      all.workspaces.reduce((sum: number, { turns }: { turns: number }) => sum + turns, 0),
    )
    const { today } = await cardOf(id)
    assert.deepEqual(today, { turns: 3, unknown_turns: 0, cost_usd: 0.375 })
  })

  test('CV-6 the needs of a workspace have pages, and the count of all', async () => {
    const failing = await platform.exec('exit 3', { name: 'often', max_attempts: 1, max_concurrent_tasks: 8 })
    await Promise.all(Array.from({ length: 101 }, (_, index) => platform.send(failing, `job ${index}`)))
    const path = `/needs-you?workspace_id=${failing}`
    const first = await get(path)
    assert.deepEqual([first.needs_you.length, first.count], [100, 101])
    const second = await get(`${path}&after=${encodeURIComponent(first.next)}`)
    const ids = new Set([...first.needs_you, ...second.needs_you].map(({ id }) => id))
    assert.deepEqual([ids.size, second.next], [101, undefined])
  })

  test('GW-2 CV-6 channels, bindings, pairings and a delivery that may not have arrived', async (t) => {
    const service = await startTelegram()
    t.after(() => service.close())
    const id = await platform.exec('printf "echo "; cat', { name: 'echo' })
    const channel = { kind: 'telegram', token: service.token, api_url: service.apiUrl, workspace_id: id }
    const made = await platform.request('POST', '/channels', channel)
    assert.equal(made.status, 201, JSON.stringify(made.body))
    await waitUntil(() => service.isConnected(), 'the bot is connected')
    const place = service.newPlace('direct')
    const bound = await platform.request('PUT', `/channels/telegram/bindings/${place.id}`, { workspace_id: id })
    assert.equal(bound.status, 200, JSON.stringify(bound.body))
    const [listed] = (await get('/channels')).channels
    assert.deepEqual([listed.name, listed.workspace_id, listed.problem], ['telegram', id, null])
    assert.deepEqual(listed.bindings, [{ place: place.id, workspace_id: id }])
    assert.ok(!JSON.stringify(listed).includes(service.token))
    const { body: viewer } = await platform.request('POST', '/tokens', { name: 'guest', role: 'viewer' })
    const headers = { Authorization: `Bearer ${viewer.token}` }
    const answer = await (await fetch(`${platform.url}/channels`, { headers })).text()
    assert.match(answer, /"name":"telegram"/)
    assert.doesNotMatch(answer, /allowed_/)

    service.say({ place, author: ADA, text: 'hello' })
    await waitUntil(async () => (await get('/pairings')).pairings[0]?.held === 1, 'the message is held')
    const [pairing] = (await get('/pairings')).pairings
    assert.deepEqual([pairing.channel, pairing.person, pairing.state], ['telegram', ADA.id, 'pending'])
    const said = () => service.written(place).map(({ text }) => text)
    await waitUntil(
      () => said().length === 1,
      () => `the code: ${said()}`,
    )
    service.failNextSend('lost_answer')
    assert.equal((await platform.request('POST', `/pairings/${pairing.code}/approve`)).status, 200)
    await waitUntil(
      async () => (await needsOf(id)).length === 1,
      () => `a need; written: ${said()}`,
    )
    const [need] = await needsOf(id)
    assert.deepEqual([need?.kind, need?.text], ['delivery', 'echo hello'])
    assert.match(need?.reason ?? '', /may not have arrived/)
    await act(need, 'arrived')
    assert.deepEqual(await needsOf(id), [])
    const [approved] = (await get('/pairings')).pairings
    assert.deepEqual([approved.state, approved.held, approved.decided_by], ['approved', 0, 'admin'])
    const { conversations } = await get(`/workspaces/${id}/conversations`)
    assert.deepEqual(
      conversations.map((one: Fields) => [one['title'], one['state']]),
      [['hello', 'answered']],
    )
    assert.equal((await platform.request('DELETE', '/channels/telegram')).status, 204)
    assert.deepEqual([(await get('/channels')).channels, (await get('/pairings')).pairings], [[], []])
  })
})
