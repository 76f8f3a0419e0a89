/** What the web page reads of a real platform, beside what the commands read. Each answer is compared with its schema. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { createFakeProgram } from '../fakes/agents/fake-program.ts'
import { bearerOptions, connectSocket } from '../harness/clients/socket-client.ts'
import { sendWithoutWaiting, startPlatformFor, waitForFinalTask, withPlatform } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

test('CV-3 the agents of the machine are listed with path, version and log-in, and the list follows a log-in', async (t) => {
  const home = mkdtempSync(join(tmpdir(), 'molecule-agents-'))
  t.after(() => rmSync(home, { recursive: true, force: true }))
  const claude = createFakeProgram('claude')
  const bin = join(home, 'bin')
  mkdirSync(bin)
  writeFileSync(join(bin, 'claude'), `#!/bin/sh\nexec ${claude.path} "$@"\n`, { mode: 0o755 })
  writeFileSync(join(bin, 'gemini'), '#!/bin/sh\necho broken >&2\nexit 3\n', { mode: 0o755 })
  const path = `${bin}:${dirname(process.execPath)}:/usr/bin:/bin`
  const none = { ANTHROPIC_API_KEY: '', ANTHROPIC_AUTH_TOKEN: '', CLAUDE_CODE_OAUTH_TOKEN: '', CLAUDE_CONFIG_DIR: '' }
  const platform = await startPlatformFor(t, { env: { ...none, HOME: home, PATH: path } })
  const find = async (backend: string) => {
    const { body } = await platform.request('GET', '/agents')
    return body.agents.find((agent: { backend: string }) => agent.backend === backend)
  }
  await waitUntil(
    async () => (await find('claude-code')).version !== undefined,
    () => 'the version of claude',
  )
  const found = await find('claude-code')
  assert.deepEqual(
    [found.program, found.installed, found.path, found.logged_in, found.warm],
    ['claude', true, join(bin, 'claude'), false, true],
  )
  assert.equal(found.remedy, 'run "claude" and log in, or set ANTHROPIC_API_KEY')
  const codex = await find('codex')
  assert.deepEqual([codex.installed, codex.path, codex.remedy], [false, undefined, 'npm install -g @openai/codex'])
  await waitUntil(
    async () => /exit code 3: broken/.test((await find('gemini')).problem ?? ''),
    () => 'the problem of gemini',
  )
  mkdirSync(join(home, '.claude'))
  writeFileSync(join(home, '.claude', '.credentials.json'), '{}')
  await waitUntil(
    async () => (await find('claude-code')).logged_in,
    () => 'the log-in of claude',
  )
  assert.equal((await find('claude-code')).remedy, undefined)
})

test('PL-11 the folders of the machine are listed for an admin, hidden ones apart; a wrong path is refused', async (t) => {
  const home = mkdtempSync(join(tmpdir(), 'molecule-folders-'))
  t.after(() => rmSync(home, { recursive: true, force: true }))
  for (const name of ['beta/.git', 'alpha', '.hidden']) mkdirSync(join(home, name), { recursive: true })
  writeFileSync(join(home, 'file.txt'), 'x')
  const platform = await startPlatformFor(t, { env: { HOME: home } })
  const read = (path: string) => platform.request('GET', `/folders?path=${encodeURIComponent(path)}`)
  const { body } = await platform.request('GET', '/folders')
  assert.deepEqual(body, {
    path: home,
    parent: dirname(home),
    home,
    is_git: false,
    truncated: false,
    folders: [
      { name: 'alpha', path: join(home, 'alpha'), is_git: false },
      { name: 'beta', path: join(home, 'beta'), is_git: true },
    ],
    hidden: [{ name: '.hidden', path: join(home, '.hidden'), is_git: false }],
  })
  assert.equal((await read('~/beta')).body.is_git, true)
  assert.equal((await read('/')).body.parent, null)
  const refusals = {
    [join(home, 'none')]: [404, `there is no folder ${join(home, 'none')}`],
    [join(home, 'file.txt')]: [400, `${join(home, 'file.txt')} is not a folder`],
    alpha: [400, 'path: "alpha" is not an absolute path'],
  }
  for (const [path, expected] of Object.entries(refusals)) {
    const { status, body: refused } = await read(path)
    assert.deepEqual([status, refused.error.message], expected)
  }
  const member = await platform.request('POST', '/tokens', { name: 'Ana', role: 'member' })
  const headers = { Authorization: `Bearer ${member.body.token}` }
  assert.equal((await fetch(`${platform.url}/folders`, { headers })).status, 403)
  const me = (await (await fetch(`${platform.url}/me`, { headers })).json()) as Record<string, unknown>
  assert.deepEqual([me['name'], me['role'], me['principal']], ['Ana', 'member', 'people'])
  assert.ok((me['actions'] as string[]).includes('message.send'))
  assert.ok(!(me['actions'] as string[]).includes('folder.read'))
})

test(
  'CV-6 one call stops every workspace: what runs is cancelled, what waits is kept',
  withPlatform(async (platform) => {
    const busy = await platform.exec('sleep 600', { name: 'busy' })
    const idle = await platform.exec('cat', { name: 'idle' })
    const running = await sendWithoutWaiting(platform, busy, 'a')
    const waiting = await sendWithoutWaiting(platform, busy, 'b')
    await waitUntil(
      async () => (await platform.request('GET', `/workspaces/${busy}`)).body.running === 1,
      () => 'a running turn',
    )
    const { status, body } = await platform.request('POST', '/stop')
    assert.equal(status, 200)
    assert.deepEqual(body.failed, [])
    const canceled = Object.fromEntries(
      body.stopped.map((one: { id: string; canceled: string[] }) => [one.id, one.canceled]),
    )
    assert.deepEqual(canceled, { [busy]: [running], [idle]: [] })
    assert.equal((await waitForFinalTask(platform, busy, running)).status.state, 'TASK_STATE_CANCELED')
    const task = (await platform.request('GET', `/tasks/${waiting}`)).body
    assert.equal(task.status.state, 'TASK_STATE_SUBMITTED')
  }),
)

test(
  'CV-1 RT-4 PL-7 a card is live: the task with its beginning, the last answer, the use of today, what needs a person',
  withPlatform(async (platform) => {
    const socket = await connectSocket(platform.url, bearerOptions(platform.token))
    socket.send({ subscribe: { _platform: null } })
    const cardOf = (of: string) =>
      socket.messages.findLast((each) => each.workspace === '_platform' && each.id === of)?.state ?? {}
    const waitForCard = (of: string, matches: (card: Record<string, unknown>) => boolean) =>
      waitUntil(
        () => matches(cardOf(of)),
        () => `the card: ${JSON.stringify(cardOf(of))}`,
      )
    const slow = await platform.exec('sleep 600', { name: 'slow' })
    const before = Date.now()
    const task = await sendWithoutWaiting(platform, slow, 'count the stars')
    await waitForCard(slow, (card) => card['current_task'] === 'count the stars')
    const since = Date.parse(cardOf(slow).current_since)
    assert.ok(since >= before - 1000 && since <= Date.now() + 1000)
    // A message that waited begins later than it was admitted.
    const later = await sendWithoutWaiting(platform, slow, 'count the clouds')
    await platform.rpc(slow, 'CancelTask', { id: task })
    await waitForCard(slow, (card) => card['current_task'] === 'count the clouds')
    assert.ok(Date.parse(cardOf(slow).current_since) > since)
    await platform.rpc(slow, 'CancelTask', { id: later })
    await waitForCard(slow, (card) => card['current_task'] === null && card['current_since'] === undefined)

    const made = await platform.request('POST', '/workspaces', {
      name: 'mock',
      runtime: 'mock',
      max_attempts: 1,
      runtime_config: { usage: true },
    })
    const { id } = made.body
    await waitForCard(id, (card) => card['needs_you'] === null)
    assert.deepEqual(cardOf(id).today, { turns: 0, unknown_turns: 0, cost_usd: null })
    await platform.send(id, 'hello')
    await waitForCard(id, (card) => card['last_answered_at'] !== undefined)
    await waitForCard(id, ({ today }) => JSON.stringify(today) === '{"turns":1,"unknown_turns":1,"cost_usd":null}')

    const failing = await platform.exec('exit 3', { name: 'failing', max_attempts: 1 })
    await platform.send(failing, 'fail')
    const failed = { count: 1, reason: 'a message failed for good' }
    await waitForCard(failing, ({ needs_you: needs }) => JSON.stringify(needs) === JSON.stringify(failed))
    const { body } = await platform.request('GET', `/workspaces/${failing}/dead-letters`)
    const [{ id: dead }] = body.dead_letters
    assert.equal((await platform.request('DELETE', `/workspaces/${failing}/dead-letters/${dead}`)).status, 204)
    await waitForCard(failing, (card) => card['needs_you'] === null)
    const { workspaces } = (await platform.request('GET', '/workspaces')).body
    assert.deepEqual(
      workspaces.find((each: { id: string }) => each.id === failing),
      cardOf(failing),
    )
    const caller = await platform.request('POST', '/tokens', { name: 'ci', role: 'caller', workspaces: [id] })
    const headers = { Authorization: `Bearer ${caller.body.token}` }
    const seen = (await (await fetch(`${platform.url}/workspaces/${id}`, { headers })).json()) as object
    for (const field of ['today', 'needs_you', 'last_answered_at', 'current_task']) assert.ok(!(field in seen), field)
    socket.socket.terminate()
  }),
)

test(
  'CV-3 a config that is refused names every problem with line and column; a dry run writes nothing',
  withPlatform(async (platform) => {
    const id = await platform.exec('cat', { name: 'edited' })
    const put = async (text: string, query = '', file = 'config.yaml') => {
      const url = `${platform.url}/workspaces/${id}/files/${file}${query}`
      const answer = await fetch(url, {
        method: 'PUT',
        headers: { Authorization: `Bearer ${platform.token}` },
        body: text,
      })
      // biome-ignore lint/suspicious/noExplicitAny: answers of several shapes
      return { status: answer.status, body: (await answer.json()) as any }
    }
    const problemsOf = async (text: string) => {
      const { status, body } = await put(text, '?dry_run=true')
      assert.equal(status, 400, JSON.stringify(body))
      assert.deepEqual((await put(text)).body.error.problems, body.error.problems)
      return body.error.problems
    }
    assert.deepEqual(await problemsOf('name: [a\nruntime: exec\n'), [
      {
        line: 2,
        column: 1,
        message: 'Flow sequence in block collection must be sufficiently indented and end with a ]',
      },
    ])
    const several = await problemsOf('name: a\nruntime_config:\n  max_attempts: 0\n  max_concurrent_tasks: many\n')
    assert.deepEqual(
      several.map(({ line, column }: { line: number; column: number }) => [line, column]),
      [
        [3, 17],
        [4, 25],
      ],
    )
    assert.match(several[0].message, /^runtime_config\.max_attempts: /)
    const [runtime] = await problemsOf('name: a\nruntime: nothing\n')
    assert.deepEqual([runtime.line, runtime.column], [2, 10])
    assert.match(runtime.message, /unknown backend "nothing"/)
    const [folder] = await problemsOf('name: a\nruntime: mock\nworking_dir: /no/such/folder\n')
    assert.deepEqual(folder, { line: 3, column: 14, message: 'working_dir: there is no folder /no/such/folder' })
    const unsent = await platform.request('PATCH', `/workspaces/${id}`, { runtime: 'nothing' })
    assert.deepEqual([unsent.status, unsent.body.error.problems], [400, undefined])
    const checked = await put('name: renamed\nruntime: mock\nruntime_config:\n  repply: x\n', '?dry_run=true')
    assert.deepEqual([checked.status, checked.body.ok], [200, true])
    assert.match(checked.body.warnings[0], /no option "repply"/)
    assert.equal((await put('be kind', '?dry_run=true', 'system-prompt.md')).status, 200)
    const { body } = await platform.request('GET', `/workspaces/${id}/files`)
    assert.deepEqual(
      body.files.map(({ path }: { path: string }) => path),
      ['config.yaml'],
    )
    assert.equal((await platform.request('GET', `/workspaces/${id}`)).body.name, 'edited')
  }),
)

test('CV-2 a conversation reads back as the chat was live: author, state, place, tools, reply, use, failure', async (t) => {
  const platform = await startPlatformFor(t)
  const claude = createFakeProgram('claude')
  const made = await platform.request('POST', '/workspaces', {
    name: 'Ada',
    runtime: 'claude-code',
    max_attempts: 1,
    runtime_config: { bin: claude.path },
  })
  const { id } = made.body
  const file = { raw: Buffer.from('hello').toString('base64'), filename: 'note.txt', mediaType: 'text/plain' }
  await platform.send(id, '!tool list the files of the shop', { contextId: 'chat-1' })
  await platform.send(id, '', { contextId: 'chat-1', parts: [{ text: '!complain please' }, file] })
  const read = async (query = '') =>
    (await platform.request('GET', `/workspaces/${id}/conversations/chat-1${query}`)).body
  const { messages, seq, context_id: contextId, before } = await read()
  assert.deepEqual([contextId, messages.length, before], ['chat-1', 2, undefined])
  const [first, second] = messages
  assert.deepEqual(
    [first.n, first.sender.kind, first.text, first.state],
    [1, 'person', '!tool list the files of the shop', 'answered'],
  )
  assert.deepEqual(second.attachments, [{ name: 'note.txt', media_type: 'text/plain', bytes: 5, part: 1 }])
  assert.ok(first.reply.text.length > 0 && !first.reply.partial)
  const [tool] = first.tools
  assert.deepEqual([tool.name, tool.state, first.tools.length], ['mcp__lab__ping_tool', 'failed', 1])
  assert.match(tool.subject, /pong/)
  assert.ok(first.duration_ms >= 0 && tool.duration_ms >= 0)
  assert.equal(first.usage.turns, 1)
  assert.deepEqual([second.state, second.handled], ['failed', false])
  assert.ok(second.reason.length > 0 && second.reply === undefined)
  const latest = await read('?limit=1')
  assert.deepEqual([latest.messages[0].n, latest.before], [2, 2])
  assert.deepEqual((await read(`?before=${latest.before}`)).messages, [first])
  const head = await platform.request('GET', `/workspaces/${id}/activity?newest=true&limit=1`)
  assert.equal(seq, head.body.next)

  const list = async (query = '') => (await platform.request('GET', `/workspaces/${id}/conversations${query}`)).body
  await platform.send(id, 'something else for Über AG', { contextId: 'chat-2' })
  const { conversations } = await list()
  assert.deepEqual(
    conversations.map((one: Record<string, unknown>) => [
      one['context_id'],
      one['title'],
      one['state'],
      one['messages'],
    ]),
    [
      ['chat-2', 'something else for Über AG', 'answered', 1],
      ['chat-1', '!tool list the files of the shop', 'failed', 2],
    ],
  )
  const pages = [await list('?limit=1')]
  for (let next = pages[0].next; next !== undefined; next = pages.at(-1).next)
    pages.push(await list(`?limit=1&after=${next}`))
  assert.deepEqual(
    pages.flatMap((page) => page.conversations),
    conversations,
  )
  const found = async (search: string) =>
    (await list(`?search=${encodeURIComponent(search)}`)).conversations.map(
      (one: { context_id: string }) => one.context_id,
    )
  assert.deepEqual(await found('FILES of'), ['chat-1'])
  assert.deepEqual(await found('messageId'), [], 'a name of a field is no match')
  assert.deepEqual(await found('100%'), [])
  for (const name of ['über ag', 'Über', 'ÜBER']) assert.deepEqual(await found(name), ['chat-2'], name)
  assert.deepEqual(await found('öber'), [])
  assert.equal((await platform.request('GET', `/workspaces/${id}/conversations/none`)).status, 404)
})

test(
  'CV-2 a chat shows what waits and why: the place in the queue, the running turn with its partial reply, what was stopped',
  withPlatform(async (platform) => {
    const id = await platform.exec('echo begun; sleep 600', { name: 'slow', runtime_config: { stream: 'true' } })
    const send = async (text: string) => {
      const message = { messageId: `m-${text}`, role: 'ROLE_USER', parts: [{ text }], contextId: 'chat' }
      const { body } = await platform.rpc(id, 'SendMessage', { message, configuration: { returnImmediately: true } })
      return body.result.task.id as string
    }
    const tasks = [await send('a'), await send('b'), await send('c')]
    // biome-ignore lint/suspicious/noExplicitAny: the shape is checked by the harness
    let messages: any[] = []
    const waitForChat = (matches: () => boolean) =>
      waitUntil(
        async () => {
          ;({ messages } = (await platform.request('GET', `/workspaces/${id}/conversations/chat`)).body)
          return matches()
        },
        () => `the chat: ${JSON.stringify(messages)}`,
      )
    await waitForChat(() => messages[0].state === 'running' && messages[0].started_at !== undefined)
    assert.deepEqual(
      messages.map(({ state, place }) => [state, place]),
      [
        ['running', undefined],
        ['queued', 1],
        ['queued', 2],
      ],
    )
    assert.match(messages[1].reason, /^waiting behind message/)
    await platform.rpc(id, 'CancelTask', { id: tasks[0] })
    await platform.request('POST', `/workspaces/${id}/pause`)
    await platform.rpc(id, 'CancelTask', { id: tasks[1] })
    await waitForChat(() => messages[0].state === 'stopped')
    const { conversations } = (await platform.request('GET', `/workspaces/${id}/conversations`)).body
    assert.deepEqual([conversations[0].state, conversations[0].messages], ['queued', 3])
  }),
)
