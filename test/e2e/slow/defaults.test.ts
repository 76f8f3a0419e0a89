/**
 * Every default value that a requirement names, read from a running platform with nothing set. The expected values are
 * written here and nowhere imported: a constant that the code shares with its test proves nothing.
 */
import assert from 'node:assert/strict'
import { readdir, rename, stat } from 'node:fs/promises'
import { connect } from 'node:net'
import { basename, delimiter, dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, type TestContext, test } from 'node:test'
import { startsOf } from '../../fakes/agents/claude-harness.ts'
import { createFakeProgram, writeFakeAgent } from '../../fakes/agents/fake-program.ts'
import { startChatEndpoint } from '../../fakes/chat-endpoint.ts'
import { createExternalWorkspace, spawnBridge, startBridge, temporaryHome } from '../../harness/bridge.ts'
import { MOLECULE, runCommand } from '../../harness/command.ts'
import { pidsOfSleep, uniqueSeconds } from '../../harness/live-processes.ts'
import {
  getTask,
  getWorkspace,
  type PlatformUnderTest,
  reasonText,
  replyText,
  sendWithoutWaiting,
  startPlatform,
  startPlatformFor,
  waitForFinalTask,
} from '../../harness/platform.ts'
import { temporaryDir } from '../../harness/process-harness.ts'
import { waitUntil, within } from '../../harness/wait.ts'

const MIB = 1024 * 1024
const DAY_MS = 24 * 3600_000

const program = createFakeProgram('claude')
/** The default of `bin` is looked up in the PATH, so the fake has the name of the real program. */
writeFakeAgent(join(program.dir, 'claude'), { agent: 'claude', scenario: 'echo', dir: program.dir })
const PATH = `${program.dir}${delimiter}${process.env['PATH']}`

let platform: PlatformUnderTest
before(async () => {
  platform = await startPlatform({ env: { PATH } })
})
after(() => platform.dispose())

async function create(more: object) {
  const { status, body } = await platform.request('POST', '/workspaces', { name: 'plain', ...more })
  assert.equal(status, 201, JSON.stringify(body))
  return body
}

/** Runs SQL in the store of the running platform, for example to let time pass. */
function inStore(text: string): void {
  const database = new DatabaseSync(join(platform.dataDir, 'molecule.db'), { timeout: 5000 })
  database.exec(text)
  database.close()
}

/** The fake claude's last start, after a message to a workspace with nothing set. */
async function claudeStart(settings: object = {}) {
  const { id } = await create({ ...settings })
  await platform.send(id, 'hello')
  const start = startsOf(program).at(-1)
  assert.ok(start)
  return { ...start, id }
}

const flag = (argv: readonly string[], name: string) => argv[argv.indexOf(name) + 1]

/** The status of a request with a body of so many bytes. JSON may end with any number of spaces. */
async function statusOfBody(path: string, bytes: number): Promise<number> {
  const response = await fetch(platform.url + path, {
    method: 'POST',
    headers: { Authorization: `Bearer ${platform.token}` },
    body: '{}'.padEnd(bytes),
  })
  await response.text()
  return response.status
}

interface Default {
  readonly id: string
  readonly what: string
  readonly expected: unknown
  readonly read: (t: TestContext) => Promise<unknown>
}

const defaults: readonly Default[] = [
  { id: 'AG-1', what: 'the runtime', expected: 'claude-code', read: async () => (await create({})).runtime },
  {
    id: 'AG-1',
    what: 'max_turns, and mode session',
    expected: ['25', 'stream-json'],
    read: async () => {
      const { argv } = await claudeStart()
      return [flag(argv, '--max-turns'), flag(argv, '--input-format')]
    },
  },
  {
    id: 'AG-1',
    what: 'pass_meta of an agent',
    expected: true,
    read: async () => {
      const { env, id } = await claudeStart()
      return env['MOLECULE_WORKSPACE_ID'] === id
    },
  },
  {
    id: 'AG-16',
    what: 'permission of an agent that can ask, and how long it waits for a person',
    expected: ['stdio', false, '30 min'],
    read: async () => {
      const { argv, id } = await claudeStart()
      await sendWithoutWaiting(platform, id, '!ask touch x')
      const asks = async () =>
        (await platform.request('GET', '/pending')).body.pending.filter(
          (ask: { workspace_id: string }) => ask.workspace_id === id,
        )
      await waitUntil(async () => (await asks()).length === 1, 'the agent asks')
      const [{ expires_in: seconds }] = await asks()
      await platform.request('POST', `/workspaces/${id}/pause?now=true`)
      const isBypass = argv.includes('--dangerously-skip-permissions')
      return [flag(argv, '--permission-prompt-tool'), isBypass, seconds > 1700 && seconds <= 1800 ? '30 min' : seconds]
    },
  },
  {
    id: 'RT-9',
    what: 'auth_token_file',
    expected: 'the-token-of-this-agent',
    read: async () => {
      const { id } = await create({})
      await fetch(`${platform.url}/workspaces/${id}/files/.auth-token`, {
        method: 'PUT',
        headers: { Authorization: `Bearer ${platform.token}` },
        body: 'the-token-of-this-agent\n',
      })
      await platform.send(id, 'hello')
      return startsOf(program).at(-1)?.env['CLAUDE_CODE_OAUTH_TOKEN']
    },
  },
  {
    id: 'AG-12',
    what: 'reply of mock',
    expected: 'echo: hello',
    read: async () => replyText(await platform.send((await create({ runtime: 'mock' })).id, 'hello')),
  },
  {
    id: 'EX-6',
    what: 'pass_meta of exec',
    expected: ['MOLECULE_OUTBOX', 'MOLECULE_TURN'],
    read: async () =>
      replyText(await platform.send(await platform.exec('env'), ''))
        ?.match(/^MOLECULE_\w+/gm)
        ?.sort() ?? 'no answer',
  },
  {
    id: 'PL-18',
    what: 'tier, and max_attempts',
    expected: [2, 4],
    read: async () => {
      const { tier, max_attempts: attempts } = await create({ runtime: 'mock' })
      return [tier, attempts]
    },
  },
  {
    id: 'PL-11',
    what: 'working_dir',
    expected: ['work', 'workspaces'],
    read: async () => {
      const id = await platform.exec('pwd')
      const folder = replyText(await platform.send(id, ''))?.trim() ?? ''
      assert.equal(basename(dirname(folder)), id.replace('ws_', 'ws-'))
      return [basename(folder), basename(dirname(dirname(folder)))]
    },
  },
  {
    id: 'IN-2',
    what: 'max_concurrent_tasks',
    expected: { shown: 1, running: 1, waiting: 1 },
    read: async () => {
      const id = await platform.exec('sleep 30')
      for (let sent = 0; sent < 2; sent++) await sendWithoutWaiting(platform, id, 'x')
      await waitUntil(async () => (await getWorkspace(platform, id)).running > 0, 'a turn runs')
      const { running, queue_depth: waiting, max_concurrent_tasks: shown } = await getWorkspace(platform, id)
      await platform.request('POST', `/workspaces/${id}/pause?now=true`)
      return { shown, running, waiting }
    },
  },
  {
    id: 'RT-6',
    what: 'retries of a failed turn',
    expected: ['2 of 4 in 5 s', '3 of 4 in 10 s', '4 of 4 in 20 s', 'TASK_STATE_FAILED'],
    read: async () => {
      const id = await platform.exec('exit 3')
      const taskId = await sendWithoutWaiting(platform, id, 'x')
      const seen: string[] = []
      await waitUntil(
        async () => {
          const task = await getTask(platform, id, taskId)
          const attempt = /attempt (\d of \d in \d+ s)/.exec(reasonText(task))?.[1]
          if (attempt !== undefined && attempt !== seen.at(-1)) {
            seen.push(attempt)
            inStore(`update messages set ready_at = 1 where task_id = '${taskId}' and ready_at is not null;
              update conversations set ready_at = 1 where workspace_id = '${id}' and ready_at is not null`)
          }
          return task.status.state === 'TASK_STATE_FAILED'
        },
        () => `four attempts: ${seen}`,
      )
      return [...seen, 'TASK_STATE_FAILED']
    },
  },
  {
    id: 'PL-4',
    what: 'heartbeats, and the silence after which a workspace is offline',
    expected: [30, 'online', 'offline'],
    read: async () => {
      const { id, auth_token: token } = await createExternalWorkspace(platform)
      const response = await fetch(`${platform.url}/registry/register`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${token}` },
        body: JSON.stringify({ workspace_id: id }),
      })
      const { heartbeat_seconds: seconds } = (await response.json()) as { heartbeat_seconds: number }
      const statusAfter = async (ms: number) => {
        inStore(`update presence set heard_at = heard_at - ${ms} where workspace_id = '${id}'`)
        return (await getWorkspace(platform, id)).status
      }
      return [seconds, await statusAfter(80_000), await statusAfter(11_000)]
    },
  },
  {
    id: 'PL-9',
    what: 'the largest body of a request, and of A2A',
    expected: [400, 413, 400, 413],
    read: async () => {
      const { id } = await create({ runtime: 'mock' })
      const rpc = `/workspaces/${id}/a2a`
      const answers = await Promise.all([
        statusOfBody('/workspaces', MIB),
        statusOfBody('/workspaces', MIB + 1),
        statusOfBody(rpc, 8 * MIB),
        statusOfBody(rpc, 8 * MIB + 1),
      ])
      // A JSON-RPC error of a body that was read has the status 200 or 400.
      return answers.map((status) => (status === 200 ? 400 : status))
    },
  },
  {
    id: 'PL-9',
    what: 'requests per minute of a token',
    expected: { answered: 600, refused: 20 },
    read: async () => {
      const { body } = await platform.request('POST', '/tokens', { name: 'busy', role: 'viewer' })
      const call = async () => {
        const response = await fetch(`${platform.url}/version`, { headers: { Authorization: `Bearer ${body.token}` } })
        await response.text()
        if (response.status === 429) assert.ok(Number(response.headers.get('retry-after')) > 0)
        return response.status
      }
      const statuses: number[] = []
      for (let calls = 0; calls < 620; calls += 20) {
        statuses.push(...(await Promise.all(Array.from({ length: 20 }, call))))
      }
      const count = (wanted: number) => statuses.filter((status) => status === wanted).length
      return { answered: count(200), refused: count(429) }
    },
  },
  {
    id: 'PL-9',
    what: 'messages that may wait for a workspace',
    expected: { at900: 'admitted', at1000: 'refused' },
    read: async () => {
      const { id } = await createExternalWorkspace(platform)
      const admit = async (messageId: string) => {
        const message = { messageId, role: 'ROLE_USER', parts: [{ text: 'x' }] }
        const { body } = await platform.rpc(id, 'SendMessage', { message, configuration: { returnImmediately: true } })
        if (body.result !== undefined) return 'admitted'
        return /queue is full/.test(JSON.stringify(body.error)) ? 'refused' : JSON.stringify(body.error)
      }
      inStore(`update workspace_load set waiting = 900 where workspace_id = '${id}'`)
      const at900 = await admit('m-900')
      inStore(`update workspace_load set waiting = 1000 where workspace_id = '${id}'`)
      return { at900, at1000: await admit('m-1000') }
    },
  },
  {
    id: 'RT-13',
    what: 'turns an hour, and the messages of the history (RT-3)',
    expected: { turns: 60, history: 20, limit: '60 turns an hour' },
    read: async (t) => {
      const endpoint = await startChatEndpoint()
      t.after(() => endpoint.stop())
      const config = { url: endpoint.urlFor('echo') }
      const { id } = await create({ runtime: 'openai', model: 'small', runtime_config: config })
      for (let turn = 1; turn <= 60; turn++) await platform.send(id, `turn ${turn}`, { contextId: 'talk' })
      const messages = endpoint.calls.at(-1)?.body.messages.filter(({ role }) => role !== 'system') ?? []
      const taskId = await sendWithoutWaiting(platform, id, 'one too many')
      const reason = async () => reasonText(await getTask(platform, id, taskId))
      await waitUntil(async () => /an hour/.test(await reason()), 'the message is parked')
      const limit = /\d+ turns an hour/.exec(await reason())?.[0]
      return { turns: endpoint.calls.length, history: messages.length - 1, limit }
    },
  },
  {
    id: 'CN-1',
    what: 'backend, folder and concurrency of a bridge',
    expected: { backend: 'claude-code', folder: process.cwd(), 'at a time': '1' },
    read: async () => {
      const { id, auth_token: token } = await createExternalWorkspace(platform)
      const args = ['connect', id, '--token', token, '--api-url', platform.url, '--dry-run']
      const { out } = await runCommand(args, { env: { PATH } })
      const line = (name: string) => new RegExp(`^ +${name} +(\\S+)`, 'm').exec(out)?.[1]
      return Object.fromEntries(['backend', 'folder', 'at a time'].map((name) => [name, line(name)]))
    },
  },
]

describe('with nothing set', () => {
  for (const { id, what, expected, read } of defaults) {
    test(`${id} default: ${what}`, async (t) => assert.deepEqual(await read(t), expected))
  }
})

test('EX-4 default: the timeout of exec is 60 s', async () => {
  const id = await platform.exec('sleep 600', { max_attempts: 1 })
  const startMs = performance.now()
  const taskId = await sendWithoutWaiting(platform, id, 'x')
  await waitUntil(
    async () => (await getTask(platform, id, taskId)).status.state === 'TASK_STATE_FAILED',
    'the turn times out',
    100_000,
  )
  assert.match(reasonText(await waitForFinalTask(platform, id, taskId)), /did not finish in time/)
  assert.ok(performance.now() - startMs > 59_000, 'it was not killed earlier')
})

test('CN-6 default: a bridge that is stopped waits 10 s for its turn, and then releases it', async (t) => {
  const workspace = await createExternalWorkspace(platform)
  const seconds = uniqueSeconds()
  const cmd = `sleep ${seconds}`
  const bridge = await startBridge(t, { url: platform.url, workspace, home: temporaryHome(t), cmd })
  await sendWithoutWaiting(platform, workspace.id, 'x')
  await waitUntil(() => pidsOfSleep(seconds).length > 0, 'the turn runs')
  const startMs = performance.now()
  bridge.kill('SIGTERM')
  assert.equal(await within(bridge.ended, 'the bridge ends'), 0)
  const tookSeconds = (performance.now() - startMs) / 1000
  assert.ok(tookSeconds > 9.5 && tookSeconds < 30, `it took ${tookSeconds} s`)
})

/** True when a program of this machine has the default port. */
const isTaken = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })

test('PL-1 CN-1 default: up listens on 127.0.0.1:8080 with its data in ~/.molecule, and connect goes there', async (t) => {
  if (await isTaken(8080)) return t.skip('another program has port 8080')
  const home = temporaryDir(t)
  const env = { HOME: home }
  const args = ['connect', 'ws_x', '--token', 'wrong', '--backend', 'mock', '--dry-run']
  assert.match((await runCommand(args, { env })).err, /http:\/\/localhost:8080 cannot be reached/)
  const up = spawnBridge(t, { command: MOLECULE, args: ['up'], env, cwd: home })
  await up.waitForOutput(/runs at http:\/\/(127\.0\.0\.1|localhost):8080\n/)
  assert.equal((await stat(join(home, '.molecule', 'admin-token'))).mode & 0o777, 0o600)
  assert.doesNotMatch((await runCommand(args, { env })).err, /cannot be reached/)
  up.kill('SIGTERM')
  await within(up.ended, 'the platform ends')
})

test('PL-2 default: the files of a deleted workspace are kept for 7 days', async (t) => {
  const dataDir = temporaryDir(t)
  const first = await startPlatformFor(t, { dataDir })
  const id = await first.exec('cat')
  assert.equal((await first.request('DELETE', `/workspaces/${id}?confirm=${id}`)).status, 200)
  await first.stop()
  const name = id.replace('ws_', 'ws-')
  const find = async (folder: string): Promise<string | undefined> => {
    const entries = await readdir(folder, { recursive: true })
    const found = entries.find((entry) => basename(entry).startsWith(`${name}.`))
    return found === undefined ? undefined : join(folder, found)
  }
  const setAge = async (days: number) => {
    const found = await find(dataDir)
    assert.ok(found, 'the folder is kept')
    await rename(found, join(dirname(found), `${name}.${Date.now() - days * DAY_MS}`))
  }
  await setAge(6.9)
  const second = await startPlatformFor(t, { dataDir })
  await second.exec('cat')
  await second.stop()
  await setAge(7.1)
  await startPlatformFor(t, { dataDir })
  await waitUntil(async () => (await find(dataDir)) === undefined, 'the folder is removed')
})
