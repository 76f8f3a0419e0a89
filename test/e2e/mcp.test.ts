/** The MCP server of a workspace on a real platform; the agents are processes that speak MCP as clients. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { callTool, connect, type TeamCall, type TeamCallResult } from '../fakes/mcp/team-client.ts'
import { BIN } from '../harness/command.ts'
import { type PlatformUnderTest, replyText, startPlatform, startPlatformFor } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

const CLIENT = join(import.meta.dirname, '../fakes/mcp/team-client.ts')
const AGENT = `exec '${process.execPath}' '${CLIENT}'`
const META = { runtime_config: { pass_meta: 'true', timeout: '100s' } }

const TOOLS = [
  'check_task_status',
  'commit_memory',
  'commit_memory_v2',
  'commit_summary',
  'delegate_task',
  'delegate_task_async',
  'forget_memory',
  'get_workspace_info',
  'list_peers',
  'search_memory',
  'send_file',
  'send_message_to_user',
]

/** Six workspaces: lead, its children asker, writer and broken, a child of writer, and a stranger of another tree. */
async function createTeam(platform: PlatformUnderTest) {
  const lead = await platform.exec('cat', { name: 'lead', role: 'decides' })
  const asker = await platform.exec(AGENT, { name: 'asker', parent_id: lead, ...META })
  const writer = await platform.exec('printf "written: "; cat', {
    name: 'writer',
    role: 'writes texts',
    parent_id: lead,
  })
  const broken = await platform.exec('exit 3', { name: 'broken', parent_id: lead, max_attempts: 1 })
  const reader = await platform.exec('cat', { name: 'reader', parent_id: writer })
  const stranger = await platform.exec('cat', { name: 'stranger' })
  return { lead, asker, writer, broken, reader, stranger }
}

async function runAgent(
  platform: PlatformUnderTest,
  id: string,
  script: { readonly transport: 'http' | 'stdio'; readonly calls: readonly TeamCall[] },
): Promise<TeamCallResult[]> {
  const task = await platform.send(id, JSON.stringify(script))
  assert.equal(task.status.state, 'TASK_STATE_COMPLETED', JSON.stringify(task.status))
  return JSON.parse(replyText(task) ?? '[]') as TeamCallResult[]
}

/** The client of a token of the workspace itself, which survives a restart of the platform. */
async function connectAs(t: TestContext, { url, request }: PlatformUnderTest, workspaceId: string) {
  const { body } = await request('POST', '/tokens', { name: 'program', role: 'workspace', workspace_id: workspaceId })
  const token: string = body.token ?? body.secret
  const open = async (apiUrl: string, isOld = false) => {
    const env = { MOLECULE_API_URL: apiUrl, MOLECULE_WORKSPACE_ID: workspaceId, MOLECULE_WORKSPACE_TOKEN: token }
    const client = await connect('http', env, isOld)
    t.after(() => client.close())
    return client
  }
  return { client: await open(url), open }
}

for (const transport of ['http', 'stdio'] as const) {
  test(`TW-1 TW-7 an agent uses all tools over ${transport} on a team of six workspaces`, async (t) => {
    const platform = await startPlatformFor(t)
    const { asker, writer, lead } = await createTeam(platform)
    const results = await runAgent(platform, asker, {
      transport,
      calls: [
        { tool: 'delegate_task_async', arguments: { workspace_id: writer, task: 'a poem' } },
        { tool: 'check_task_status', arguments: { task_id: '@0.task_id' }, until: 'written' },
        { tool: 'delegate_task', arguments: { workspace_id: 'writer', task: 'a letter' } },
        { tool: 'list_peers' },
        { tool: 'get_workspace_info' },
        { tool: 'commit_memory', arguments: { content: 'the poem is about herons' } },
        { tool: 'search_memory', arguments: { query: 'herons' } },
        { tool: 'forget_memory', arguments: { memory_id: '@5.id' } },
        { tool: 'search_memory', arguments: { query: 'herons' } },
        { tool: 'commit_summary', arguments: { content: 'we wrote two texts', namespace: 'team' } },
        { tool: 'search_memory', arguments: { query: 'texts', namespace: 'team' } },
        { tool: 'check_task_status' },
        { tool: 'send_message_to_user', arguments: { message: 'the texts are ready' } },
      ],
    })
    const texts = results.map((result) => result.text)
    assert.deepEqual(
      results.filter(({ isError }) => isError),
      [],
    )
    assert.match(texts[1] ?? '', /^\{"task_id":"[^"]+","state":"completed"\}\n\nwritten: a poem$/)
    assert.equal(texts[2], 'written: a letter')
    const { peers } = JSON.parse(texts[3] ?? '')
    assert.deepEqual(
      peers.map((peer: { name: string; status: string }) => [peer.name, peer.status]),
      [
        ['lead', 'online'],
        ['writer', 'online'],
        ['broken', 'online'],
      ],
    )
    assert.deepEqual(JSON.parse(texts[3] ?? '').peers[1], {
      name: 'writer',
      id: writer,
      status: 'online',
      role: 'writes texts',
    })
    const info = JSON.parse(texts[4] ?? '')
    assert.deepEqual([info.id, info.name, info.parent_id, info.running], [asker, 'asker', lead, 1])
    assert.match(texts[6] ?? '', /the poem is about herons/)
    assert.deepEqual(JSON.parse(texts[8] ?? ''), { memories: [] })
    assert.match(texts[10] ?? '', new RegExp(`team:${lead}.*we wrote two texts`))
    const { tasks } = JSON.parse(texts[11] ?? '')
    assert.deepEqual(
      tasks.map(({ workspace, state, task }: Record<string, string>) => [workspace, state, task]),
      [
        ['writer', 'completed', 'a letter'],
        ['writer', 'completed', 'a poem'],
      ],
    )
    const { body } = await platform.request('GET', `/workspaces/${asker}/activity?type=message_to_user`)
    assert.deepEqual(
      body.activity.map((entry: { text: string }) => entry.text),
      ['the texts are ready'],
    )
  })

  test(`TW-4 over ${transport} strangers, a failed peer and the workspace itself are refused with the ways on`, async (t) => {
    const platform = await startPlatformFor(t)
    const { asker, stranger, reader } = await createTeam(platform)
    const refused = async (target: string) => {
      const call = { tool: 'delegate_task', arguments: { workspace_id: target, task: 'hello' } }
      const [result] = await runAgent(platform, asker, { transport, calls: [call] })
      assert.equal(result?.isError, true)
      assert.match(result?.text ?? '', /^\[A2A_ERROR\] DELEGATION FAILED: /)
      assert.match(result?.text ?? '', /ask another peer; do the work yourself; or tell the user/)
      return result?.text ?? ''
    }
    assert.match(await refused(stranger), /may talk to its parent, its children and its siblings/)
    assert.match(await refused(reader), /is none of them/)
    assert.match(await refused('stranger'), /you have no peer called "stranger"/)
    assert.match(await refused('broken'), /the task failed: /)
    assert.match(await refused(asker), /cannot talk to itself/)
  })
}

test('TW-1 the server lists its tools in both revisions of the protocol, and says what failed', async (t) => {
  const platform = await startPlatformFor(t)
  const { asker } = await createTeam(platform)
  const { client, open } = await connectAs(t, platform, asker)
  const old = await open(platform.url, true)
  assert.notEqual(client.getNegotiatedProtocolVersion(), old.getNegotiatedProtocolVersion())
  for (const each of [client, old]) {
    const { tools } = await each.listTools()
    assert.deepEqual(tools.map(({ name }) => name).sort(), TOOLS)
    const answer = await callTool(each, { tool: 'delegate_task', arguments: { workspace_id: 'writer', task: 'x' } })
    assert.equal(answer.text, 'written: x')
  }
  const missing = await callTool(client, { tool: 'check_task_status', arguments: { task_id: 'nothing' } })
  assert.deepEqual([missing.isError, missing.text], [true, 'you delegated no task nothing'])
  const other = await callTool(client, {
    tool: 'commit_memory',
    arguments: { content: 'x', namespace: 'workspace:ws_other' },
  })
  assert.match(other.text, /may not use the memories of workspace:ws_other/)
})

test('TW-1 a long result comes in pages', async (t) => {
  const platform = await startPlatformFor(t)
  const { asker, lead } = await createTeam(platform)
  await platform.exec(`node -e "process.stdout.write('ä'.repeat(30000))"`, { name: 'talker', parent_id: lead })
  const { client } = await connectAs(t, platform, asker)
  const first = await callTool(client, { tool: 'delegate_task', arguments: { workspace_id: 'talker', task: 'talk' } })
  const [, id] =
    /page 1 of 3 of the answer\. check_task_status with task_id "([^"]+)" and page 2/.exec(first.text) ?? []
  assert.ok(Buffer.byteLength(first.text) < 25_000)
  const page = async (number: number) =>
    (await callTool(client, { tool: 'check_task_status', arguments: { task_id: id, page: number } })).text
  const pages = [await page(1), await page(2), await page(3)]
  assert.match(pages[1] ?? '', /^\{"task_id":"[^"]+","state":"completed","page":2,"pages":3\}\n\n/)
  const joined = pages.map((text) => text.slice(text.indexOf('\n\n') + 2)).join('')
  assert.equal(joined, 'ä'.repeat(30_000))
  assert.equal(await page(4), 'the result has 3 pages')
})

test('TW-1 TW-3 kill -9 in the middle of delegate_task: the result is found later by its id', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'molecule-mcp-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const [dataDir, go] = [join(folder, 'data'), join(folder, 'go')]
  const first = await startPlatform({ dataDir })
  t.after(() => first.dispose())
  const asker = await first.exec('cat', { name: 'asker' })
  await first.exec(`until [ -e '${go}' ]; do sleep 0.1; done; echo at last`, { name: 'slow' })
  const { client, open } = await connectAs(t, first, asker)
  let taskId: string | undefined
  const calling = callTool(
    client,
    { tool: 'delegate_task', arguments: { workspace_id: 'slow', task: 'wait' } },
    (message) => {
      taskId ??= /has the task (\S+)/.exec(message)?.[1]
    },
  )
  const broken = assert.rejects(calling)
  await waitUntil(() => taskId !== undefined, 'the first progress')
  await first.stop('SIGKILL')
  await client.close()
  await broken
  writeFileSync(go, '')
  const second = await startPlatform({ dataDir })
  t.after(() => second.dispose())
  const later = await open(second.url)
  let status = ''
  await waitUntil(
    async () => {
      status = (await callTool(later, { tool: 'check_task_status', arguments: { task_id: taskId } })).text
      return status.includes('completed')
    },
    () => status,
  )
  assert.match(status, /at last/)
})

test('TW-1 a platform that is killed under molecule mcp on stdio: the call fails with a sentence, and later calls work', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'molecule-mcp-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const [dataDir, go] = [join(folder, 'data'), join(folder, 'go')]
  const first = await startPlatform({ dataDir })
  t.after(() => first.dispose())
  const asker = await first.exec('cat', { name: 'asker' })
  await first.exec(`until [ -e '${go}' ]; do sleep 0.1; done; echo at last`, { name: 'slow' })
  const { body } = await first.request('POST', '/tokens', { name: 'mcp', role: 'workspace', workspace_id: asker })
  const client = await connect('stdio', {
    MOLECULE_API_URL: first.url,
    MOLECULE_WORKSPACE_ID: asker,
    MOLECULE_WORKSPACE_TOKEN: body.token ?? body.secret,
    PATH: `${BIN}:${process.env['PATH']}`,
  })
  t.after(() => client.close())
  let taskId: string | undefined
  const slow = { tool: 'delegate_task', arguments: { workspace_id: 'slow', task: 'wait' } }
  const calling = callTool(client, slow, (message) => {
    taskId ??= /has the task (\S+)/.exec(message)?.[1]
  })
  const broken = assert.rejects(calling, /the platform broke off this call; a task that it delegated goes on/)
  await waitUntil(() => taskId !== undefined, 'the first progress')
  await first.stop('SIGKILL')
  await broken
  writeFileSync(go, '')
  // Asked while no platform listens: it waits for the platform, which comes back on the same port.
  const asked = callTool(client, { tool: 'list_peers' })
  const second = await startPlatform({ dataDir, args: ['--port', new URL(first.url).port] })
  t.after(() => second.dispose())
  assert.match((await asked).text, /slow/)
  let status = ''
  await waitUntil(
    async () => {
      status = (await callTool(client, { tool: 'check_task_status', arguments: { task_id: taskId } })).text
      return status.includes('completed')
    },
    () => status,
  )
  assert.match(status, /at last/)
})
