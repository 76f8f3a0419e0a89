/** "Needs you": one list over the API, the command line and the live stream, and every way out works. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import type { NeedView } from '../../src/client/needs.ts'
import { CLAUDE_LOGGED_IN, createFakeProgram } from '../fakes/agents/fake-program.ts'
import { bearerOptions, connectSocket } from '../harness/clients/socket-client.ts'
import { runCommand } from '../harness/command.ts'
import { type PlatformUnderTest, startPlatform } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

const { path: claude } = createFakeProgram('claude')
/** A line program that asks a question, and takes the next message as its answer. */
const ASKING = `let asked = false
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const message = { role: "agent", parts: [{ text: asked ? "painted" : "which colour?" }] }
  const status = { state: asked ? "completed" : "input_required", message }
  asked = true
  console.log(JSON.stringify({ jsonrpc: "2.0", id: JSON.parse(line).id, result: { status } }))
})`

describe('needs you', () => {
  let platform: PlatformUnderTest
  before(async () => {
    platform = await startPlatform({ env: CLAUDE_LOGGED_IN })
  })
  after(() => platform.dispose())

  const make = async (workspace: object): Promise<string> => {
    const { status, body } = await platform.request('POST', '/workspaces', workspace)
    assert.equal(status, 201, JSON.stringify(body))
    return body.id
  }
  const read = async (query = ''): Promise<{ needs_you: NeedView[]; count: number; next?: string }> => {
    const { status, body } = await platform.request('GET', `/needs-you${query}`)
    assert.equal(status, 200, JSON.stringify(body))
    return body
  }
  const needOf = async (workspaceId: string, kind: string): Promise<NeedView> => {
    const { needs_you: needs } = await read(`?workspace_id=${workspaceId}`)
    return needs.find((need) => need.kind === kind) ?? assert.fail(`no ${kind} in ${JSON.stringify(needs)}`)
  }
  const act = async (need: NeedView, name: string) => {
    const action = need.actions.find((one) => one.name === name) ?? assert.fail(`no ${name}`)
    const { status, body } = await platform.request(action.method, action.path, action.body)
    assert.ok(status < 300, `${status} ${JSON.stringify(body)}`)
  }
  const molecule = async (...args: string[]) => {
    const { code, out, err } = await runCommand(args, { env: { MOLECULE_HOME: platform.dataDir } })
    assert.equal(code, 0, err)
    return out
  }

  const watchPlatform = async (t: TestContext, token: string) => {
    const client = await connectSocket(platform.url, bearerOptions(token))
    t.after(() => client.socket.terminate())
    client.send({ subscribe: { _platform: null } })
    return client.messages
  }

  test('CV-6 GW-9 CL-7 one list has every kind, each with reason, time and ways out that work; the stream tells each change', async (t) => {
    const messages = await watchPlatform(t, platform.token)
    const counts = () => messages.filter(({ type }) => type === 'needs_you').map((message) => message.count)
    await waitUntil(() => counts().length === 1, 'the stream begins with the count')
    assert.deepEqual(counts(), [0])

    const asker = await make({ name: 'asker', runtime: 'claude-code', runtime_config: { bin: claude } })
    const curious = await make({
      name: 'curious',
      runtime: 'stdio',
      runtime_config: { cmd: `${process.execPath} -e '${ASKING}'` },
    })
    const failing = await platform.exec('echo no >&2; exit 3', { name: 'failing', max_attempts: 1 })
    const away = await make({ name: 'away', runtime: 'external' })
    await make({ name: 'idle', runtime: 'external' })
    await platform.send(asker, '!ask npm test')
    const asked = await platform.send(curious, 'paint it')
    await platform.send(failing, 'back up')
    await platform.send(away, 'for later')

    const { needs_you: needs, count, next } = await read()
    assert.deepEqual([count, next], [4, undefined])
    assert.deepEqual(
      needs.map(({ kind, workspace_name: name, actions }) => [kind, name, actions.map((one) => one.name).join()]),
      [
        ['permission', 'asker', 'allow,always,deny'],
        ['question', 'curious', 'answer'],
        ['dead_letter', 'failing', 'replay,discard'],
        ['workspace', 'away', 'check'],
      ],
    )
    const [permission, question, dead, offline] = needs
    assert.ok(Date.parse(permission?.expires_at ?? '') > Date.parse(permission?.since ?? ''))
    assert.equal(permission?.permission?.would_cover_more?.pattern, 'npm test *')
    assert.deepEqual([question?.text, question?.task_id], ['which colour?', asked.id])
    assert.match(dead?.reason ?? '', /^a message failed for good: /)
    assert.equal(offline?.reason, 'it is offline and 1 message waits: it has never connected')
    // The cards count the same things.
    const { workspaces } = (await platform.request('GET', '/workspaces')).body
    const onCards = workspaces.reduce(
      (sum: number, one: { needs_you: { count: number } | null }) => sum + (one.needs_you?.count ?? 0),
      0,
    )
    assert.equal(onCards, 4)
    await waitUntil(() => counts().at(-1) === 4, 'the stream follows')
    const status = JSON.parse(await molecule('status', '-o', 'json'))
    assert.deepEqual(
      [status.needs_you_count, status.needs_you.map(({ id }: NeedView) => id)],
      [4, needs.map(({ id }) => id)],
    )
    assert.match(await molecule('pending'), /^ID .*\n(\S+ .*\n){4}\n/)

    await act(await needOf(asker, 'permission'), 'deny')
    await molecule('pending', 'answer', asked.id, 'blue')
    await act(await needOf(failing, 'dead_letter'), 'discard')
    await waitUntil(async () => (await read()).count === 1, 'only the offline workspace is left')
    await waitUntil(() => counts().at(-1) === 1, 'the stream follows')
    const refused = await runCommand(['pending', 'replay', away], { env: { MOLECULE_HOME: platform.dataDir } })
    assert.match(refused.err, /is a workspace; it can be answered with: check/)
  })

  test('CV-6 a missing log-in is a need with its command, and "check again" finds the log-in', async (t) => {
    const bare = await startPlatform({ env: { HOME: '/nowhere' } })
    t.after(() => bare.dispose())
    const { body } = await bare.request('POST', '/workspaces', {
      name: 'scout',
      runtime: 'claude-code',
      runtime_config: { bin: claude },
    })
    const { needs_you: needs } = (await bare.request('GET', '/needs-you')).body as { needs_you: NeedView[] }
    assert.deepEqual(
      needs.map(({ kind, workspace_name: name }) => [kind, name]),
      [['login', 'scout']],
    )
    assert.match(needs[0]?.reason ?? '', /is not logged in: .*claude/)
    await writeFile(join(bare.dataDir, 'workspaces', body.id.replace('ws_', 'ws-'), '.auth-token'), 'a-token')
    const [check] = needs[0]?.actions ?? []
    assert.equal((await bare.request(check?.method ?? '', check?.path ?? '')).status, 200)
    assert.equal((await bare.request('GET', '/needs-you')).body.count, 0)
  })

  test('CV-6 the list has pages, filters by workspace, and refuses a wrong cursor', async () => {
    const failing = await platform.exec('exit 3', { name: 'often', max_attempts: 1, max_concurrent_tasks: 8 })
    const sent = Array.from({ length: 105 }, (_, index) => platform.send(failing, `job ${index}`))
    await Promise.all(sent)
    const path = `?workspace_id=${failing}`
    const first = await read(path)
    assert.deepEqual([first.needs_you.length, first.count], [100, 105])
    const second = await read(`${path}&after=${encodeURIComponent(first.next ?? '')}`)
    const ids = new Set([...first.needs_you, ...second.needs_you].map(({ id }) => id))
    assert.deepEqual([ids.size, second.next], [105, undefined])
    for (const cursor of ['nothing', 'dead_letter:x', ':']) {
      assert.equal(
        (await platform.request('GET', `/needs-you?after=${encodeURIComponent(cursor)}`)).status,
        400,
        cursor,
      )
    }
  })

  test('CV-6 PL-12 only people who may answer see what waits', async (t) => {
    const { body } = await platform.request('POST', '/tokens', { name: 'eye', role: 'viewer' })
    const answer = await fetch(`${platform.url}/needs-you`, { headers: { Authorization: `Bearer ${body.token}` } })
    assert.equal(answer.status, 403)
    const messages = await watchPlatform(t, body.token)
    await waitUntil(() => messages.some(({ type }) => type === 'snapshot'), 'the snapshot')
    await make({ name: 'one more', runtime: 'mock' })
    await waitUntil(() => messages.some(({ type }) => type === 'created'), 'a change')
    assert.ok(!messages.some(({ type }) => type === 'needs_you'))
  })
})
