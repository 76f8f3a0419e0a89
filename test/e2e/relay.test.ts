/** Relays to real remote agents of every version and binding: callers see what they would see directly. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { createA2aClient } from '../../src/client/a2a-client.ts'
import { createOutbound } from '../../src/client/outbound.ts'
import type { Message, MessageContent, Task } from '../../src/protocol/a2a.ts'
import { messageToV03, taskFromV03 } from '../../src/protocol/v03/v03.ts'
import { type RemoteAgent, startRemoteAgent } from '../fakes/remote-agent/start.ts'
import { startForwardingAgent } from '../harness/forwarding-agent.ts'
import { type PlatformUnderTest, reasonText, startPlatform } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

/** The versions of callers. Remote agents have a third form: 1.0 over REST only. */
const VERSIONS = ['1.0', '0.3'] as const
const REMOTES = [...VERSIONS, 'rest'] as const
type Version = (typeof VERSIONS)[number]

const agents: Record<(typeof REMOTES)[number], RemoteAgent> = {
  '1.0': await startRemoteAgent('1.0'),
  '0.3': await startRemoteAgent('0.3'),
  rest: await startRemoteAgent('rest'),
}
const shared = await startPlatform()
after(async () => {
  for (const remote of REMOTES) agents[remote].stop()
  await shared.dispose()
})

async function relayTo(platform: PlatformUnderTest, url: string, more: object = {}): Promise<string> {
  const { status, body } = await platform.request('POST', '/workspaces', {
    name: 'relay',
    runtime: 'a2a',
    url,
    ...more,
  })
  assert.equal(status, 201, JSON.stringify(body))
  assert.equal(body.status, 'online', JSON.stringify(body))
  return body.id
}

const userMessage = (text: string, more: Partial<Message> = {}): Message => ({
  messageId: randomUUID(),
  role: 'ROLE_USER',
  parts: [{ text }],
  ...more,
})

/** Sends as a caller of the version and waits for the result; the task in 1.0 form. */
async function ask(version: Version, id: string, message: Message): Promise<Task> {
  const [method, params] =
    version === '1.0' ? ['SendMessage', { message }] : ['message/send', { message: messageToV03(message) }]
  const { body } = await shared.rpc(id, method, params)
  assert.ok(body.result, JSON.stringify(body).slice(0, 500))
  return version === '1.0' ? body.result.task : taskFromV03(body.result)
}

/** The parts of a task that must be equal behind a relay; each side has its own ids. */
function comparable({ status, artifacts }: Task) {
  const { state, message } = status
  return { state, message: message && withoutIds(message), artifacts: artifacts ?? [] }
}

const withoutIds = ({ parts, metadata }: MessageContent) => ({ parts, ...(metadata && { metadata }) })

/** Sends the text to the agent itself. */
async function direct(agent: RemoteAgent, text: string): Promise<Task> {
  const client = createA2aClient({ url: agent.url, outbound: createOutbound(), headers: async () => ({}) })
  let id = ''
  for await (const { task } of client.stream({ message: userMessage(text) })) id ||= task?.id ?? ''
  return await client.get(id)
}

for (const remote of REMOTES) {
  for (const caller of VERSIONS) {
    test(`AG-11 a ${caller} caller sees a ${remote} agent behind a relay as it would see it directly`, async () => {
      const agent = agents[remote]
      const id = await relayTo(shared, agent.url)
      for (const text of ['rich', 'stream one two three four five six', 'ask', 'login', 'reject', 'silent']) {
        const seen = comparable(await ask(caller, id, userMessage(text, { contextId: randomUUID() })))
        assert.deepEqual(seen, comparable(await direct(agent, text)), text)
      }
      const broken = await ask(caller, id, userMessage('break'))
      assert.deepEqual(broken.artifacts, [{ artifactId: 'answer', parts: [{ text: 'half of it' }] }])
      assert.equal(reasonText(broken), 'no paper left')
      const failed = await ask(caller, id, userMessage('fail'))
      assert.equal(failed.status.state, 'TASK_STATE_FAILED')
      assert.equal(reasonText(failed), 'the disk is full')
    })

    test(`AG-11 a message without a task from a ${remote} agent is a completed task for a ${caller} caller`, async () => {
      const id = await relayTo(shared, agents[remote].url)
      const parts = [
        { text: 'bare hello' },
        { raw: 'aGk=', mediaType: 'text/plain', filename: 'a.txt' },
        { data: { deep: [1, null] } },
      ]
      const task = await ask(
        caller,
        id,
        userMessage('', { parts, metadata: { lang: 'en', idempotency_key: randomUUID() } }),
      )
      assert.equal(task.status.state, 'TASK_STATE_COMPLETED')
      const [reply] = task.artifacts ?? []
      assert.deepEqual(reply?.parts, [{ text: 'hello' }, ...parts.slice(1)])
      assert.deepEqual(reply?.metadata, { mood: 'bare', more: { deep: [1, 2] } })
      const sent = (await agents[remote].seen()).sends.at(-1)
      assert.match(sent?.messageId ?? '', /^mol-/)
      assert.deepEqual(sent?.metadata, { lang: 'en', molecule_path: [id] })
      assert.deepEqual(sent?.parts, parts)
    })

    test(`AG-11 a ${caller} caller answers the question of a ${remote} agent in the same task`, async () => {
      const id = await relayTo(shared, agents[remote].url)
      const question = await ask(caller, id, userMessage('ask'))
      assert.equal(question.status.state, 'TASK_STATE_INPUT_REQUIRED')
      const asked = (await agents[remote].seen()).sends.at(-1)
      const names = { taskId: question.id, contextId: question.contextId }
      const answer = await ask(caller, id, userMessage('blue', names))
      assert.equal(answer.id, question.id)
      assert.equal(answer.status.state, 'TASK_STATE_COMPLETED')
      assert.deepEqual(answer.artifacts, [{ artifactId: 'answer', parts: [{ text: 'you said blue' }] }])
      const answered = (await agents[remote].seen()).sends.at(-1)
      assert.deepEqual([answered?.taskId, answered?.contextId], [asked?.taskId, asked?.contextId])
      // A new task of the conversation is a new remote task in the same remote context.
      await ask(caller, id, userMessage('stream again', { contextId: question.contextId }))
      const next = (await agents[remote].seen()).sends.at(-1)
      assert.notEqual(next?.taskId, asked?.taskId)
      assert.equal(next?.contextId, asked?.contextId)
    })
  }
}

/** Waits until the relay has stored the id of the remote task. */
async function waitForRemoteTask(dataDir: string): Promise<{ taskId: string }> {
  let value: string | undefined
  await waitUntil(() => {
    const database = new DatabaseSync(join(dataDir, 'molecule.db'), { readOnly: true })
    value = database.prepare(`select value from turn_notes where key = 'upstream'`).get()?.['value'] as string
    database.close()
    return value !== undefined
  })
  return JSON.parse(value ?? '')
}

async function withDataDir(work: (dataDir: string) => Promise<void>): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'molecule-e2e-'))
  try {
    await work(dataDir)
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
}

for (const remote of REMOTES) {
  for (const moment of ['before', 'after'] as const) {
    test(`AG-11 a relay killed during a task sends to a ${remote} agent once; the remote task ends ${moment} the restart`, () =>
      withDataDir(async (dataDir) => {
        const agent = agents[remote]
        let platform = await startPlatform({ dataDir })
        try {
          const id = await relayTo(platform, agent.url)
          const { sends } = await agent.seen()
          const message = userMessage('slow')
          const configuration = { returnImmediately: true }
          await platform.rpc(id, 'SendMessage', { message, configuration })
          await waitForRemoteTask(dataDir)
          await platform.stop('SIGKILL')
          if (moment === 'before') await agent.release()
          platform = await startPlatform({ dataDir })
          if (moment === 'after') await agent.release()
          const { body } = await platform.rpc(id, 'SendMessage', { message })
          assert.equal(body.result.task.status.state, 'TASK_STATE_COMPLETED', JSON.stringify(body))
          assert.deepEqual(body.result.task.artifacts, [
            { artifactId: 'answer', parts: [{ text: 'one ' }, { text: 'two' }] },
          ])
          assert.equal((await agent.seen()).sends.length, sends.length + 1)
        } finally {
          await platform.dispose()
        }
      }))
  }

  test(`AG-11 cancelling a task also cancels it at the ${remote} agent`, () =>
    withDataDir(async (dataDir) => {
      const platform = await startPlatform({ dataDir })
      try {
        const id = await relayTo(platform, agents[remote].url)
        const configuration = { returnImmediately: true }
        const { body } = await platform.rpc(id, 'SendMessage', { message: userMessage('endless'), configuration })
        const { taskId } = await waitForRemoteTask(dataDir)
        const canceled = await platform.rpc(id, 'CancelTask', { id: body.result.task.id })
        assert.equal(canceled.body.result.status.state, 'TASK_STATE_CANCELED')
        await waitUntil(async () => (await agents[remote].seen()).cancels.includes(taskId))
      } finally {
        await platform.dispose()
      }
    }))
}

test('AG-17 credentials from a file, a variable or headers reach the agent and are shown nowhere', () =>
  withDataDir(async (dataDir) => {
    const secret = 'a-secret-that-nobody-sees'
    const tokenFile = join(dataDir, 'agent-token')
    await writeFile(tokenFile, `${secret}-1\n`)
    const platform = await startPlatform({
      dataDir,
      env: { AGENT_TOKEN: `${secret}-2` },
      args: ['--log-level', 'debug'],
    })
    try {
      const agent = agents['1.0']
      const byFile = await relayTo(platform, agent.url, { runtime_config: { token_file: tokenFile } })
      await platform.send(byFile, 'stream x')
      assert.equal((await agent.seen()).authorization.at(-1), `Bearer ${secret}-1`)
      await writeFile(tokenFile, `${secret}-3\n`)
      await platform.send(byFile, 'stream x')
      assert.equal((await agent.seen()).authorization.at(-1), `Bearer ${secret}-3`)
      const byVariable = await relayTo(platform, agent.url, { runtime_config: { token_env: 'AGENT_TOKEN' } })
      await platform.send(byVariable, 'stream x')
      assert.equal((await agent.seen()).authorization.at(-1), `Bearer ${secret}-2`)
      const headers = { Authorization: `Custom ${secret}-4`, 'X-Other': secret }
      const byHeaders = await relayTo(platform, agent.url, { runtime_config: { headers } })
      await platform.send(byHeaders, 'stream x')
      assert.equal((await agent.seen()).authorization.at(-1), `Custom ${secret}-4`)
      const refused = await platform.request('POST', '/workspaces', {
        name: 'x',
        runtime: 'a2a',
        url: `http://ada:${secret}@127.0.0.1/`,
      })
      assert.equal(refused.status, 400)
      const shown = await platform.request('GET', '/workspaces')
      const log = await readFile(join(dataDir, 'molecule.log'), 'utf8')
      for (const text of [JSON.stringify(shown.body), JSON.stringify(refused.body), log, platform.output()]) {
        assert.ok(!text.includes(secret))
      }
    } finally {
      await platform.dispose()
    }
  }))

test('AG-17 a relay to an unreachable or wrong URL becomes a failed workspace with the reason', async () => {
  const make = async (url: string) => {
    const { body } = await shared.request('POST', '/workspaces', { name: 'relay', runtime: 'a2a', url })
    assert.equal(body.status, 'failed', JSON.stringify(body))
    return body.status_reason as string
  }
  assert.match(await make('http://127.0.0.1:1/'), /cannot be reached.*check the url/)
  assert.match(await make(`${agents['1.0'].url}/nowhere`), /HTTP 404/)
  const { status, body } = await shared.request('POST', '/workspaces', { name: 'relay', runtime: 'a2a' })
  assert.equal(status, 400)
  assert.match(body.error.message, /"url" is required/)
})

test('AG-11 a workspace of another platform works as a remote agent', async () => {
  const other = await startPlatform()
  try {
    const target = await other.exec('cat')
    const headers = { Authorization: `Bearer ${other.token}` }
    const id = await relayTo(shared, `${other.url}/workspaces/${target}/a2a`, { runtime_config: { headers } })
    const task = await ask('1.0', id, userMessage('through two platforms'))
    assert.equal(task.status.state, 'TASK_STATE_COMPLETED', JSON.stringify(task.status))
    assert.deepEqual(task.artifacts?.[0]?.parts, [{ text: 'through two platforms' }])
    const failing = await other.exec('echo no luck >&2; exit 3', { max_attempts: 1 })
    const relay = await relayTo(shared, `${other.url}/workspaces/${failing}/a2a`, { runtime_config: { headers } })
    const failed = await ask('1.0', relay, userMessage('x'))
    assert.equal(failed.status.state, 'TASK_STATE_FAILED')
    assert.notEqual(reasonText(failed), '')
  } finally {
    await other.dispose()
  }
})

test('AG-11 a relay to itself is refused, and the error shows the circle', async () => {
  // The agent must forward to the workspace, which exists only later.
  let target = shared.url
  const mirror = await startForwardingAgent('1.0', () => target)
  try {
    const headers = { Authorization: `Bearer ${shared.token}` }
    const id = await relayTo(shared, mirror.url, { runtime_config: { headers } })
    target = `${shared.url}/workspaces/${id}/a2a`
    const task = await ask('1.0', id, userMessage('hello'))
    assert.equal(task.status.state, 'TASK_STATE_FAILED')
    assert.match(reasonText(task), new RegExp(`circle: ${id} -> ${id}`))
  } finally {
    mirror.close()
  }
})

test('PL-17 an artifact of a real task downloads as a file', async () => {
  const id = await relayTo(shared, agents['1.0'].url)
  const task = await ask('1.0', id, userMessage('rich'))
  const get = (path: string, token = shared.token) =>
    fetch(`${shared.url}/tasks/${task.id}/artifacts/${path}`, { headers: { Authorization: `Bearer ${token}` } })
  const table = await get('files?part=0')
  assert.equal(table.headers.get('content-type'), 'text/csv')
  assert.match(table.headers.get('content-disposition') ?? '', /^attachment; filename="table.csv"/)
  assert.equal(await table.text(), 'a,b\n1,2\n')
  const whole = (await (await get('files')).json()) as { parts: unknown[] }
  assert.equal(whole.parts.length, 3)
  assert.equal((await get('nothing')).status, 404)
  const program = { name: 'program', role: 'caller', workspaces: [id] }
  const { body } = await shared.request('POST', '/tokens', program)
  assert.equal((await get('files', body.token)).status, 404, 'a program that did not send the message gets 404')
})
