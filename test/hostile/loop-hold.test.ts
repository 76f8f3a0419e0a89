/**
 * Attacks on the event loop of a real platform: the largest and worst bodies that each route accepts or refuses, and the
 * reads of what was stored. Prints how long each held the loop. `npm run test:fuzz` runs it too.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, test } from 'node:test'
import { type JsonInput, SendMessageRequest } from '@a2a-js/sdk'
import { type ServiceError, status as statusCodes } from '@grpc/grpc-js'
import { createGrpcClient } from '../harness/clients/grpc-client.ts'
import { type LoopHold, type ProbedPlatform, startProbedPlatform } from '../harness/measures/loop-probe.ts'

/** What PL-23 allows, on a machine that does nothing else. */
const HOLD_MS = 50
/** A run of the tests shares its machine, so only CPU time far beyond the limit fails it. */
const CPU_MS_FAILS = 4 * HOLD_MS
/** Tries of each attack. The shortest hold counts: other programs and the collection of garbage add to the others. */
const TRIES = 3
const MIB = 1024 * 1024

let folder: string
let platform: ProbedPlatform
let workspaceId: string
let externalId: string
let messages = 0

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'molecule-hold-'))
  platform = await startProbedPlatform(folder, ['--grpc-port', '0'])
  const create = async (body: object) => (await platform.request('POST', '/workspaces', body)).body.id
  workspaceId = await create({ name: 'mock', runtime: 'mock', max_concurrent_tasks: 8 })
  externalId = await create({ name: 'elsewhere', runtime: 'external' })
})
after(async () => {
  await platform.dispose()
  await rm(folder, { recursive: true, force: true })
})

/** JSON of about this many bytes, by name; each was chosen because it is slow to scan, to parse or to write. */
const WORST: Readonly<Record<string, (bytes: number) => string>> = {
  'one text': (bytes) => `"${'x'.repeat(bytes)}"`,
  'escaped quotes': (bytes) => `"${'\\"'.repeat(bytes / 2)}"`,
  'other scripts': (bytes) => `"${'漢é'.repeat(bytes / 5)}"`,
  'many keys': (bytes) => objectOf(valuesOf(bytes), bytes),
  'many objects': (bytes) => {
    const count = valuesOf(bytes) / 2
    return `[${listOf(count, (index) => `{"k${index}":"${'v'.repeat(Math.floor(bytes / count) - 20)}"}`)}]`
  },
  '560,000 keys': () => objectOf(560_000, 6_000_000),
  'a number of a million digits': () => '7'.repeat(MIB),
  brackets: (bytes) => '['.repeat(bytes),
}

/** As many values as a body of this size may have, with room for those around them. */
const valuesOf = (bytes: number): number => (bytes > MIB ? 9900 : 1900)
const listOf = (count: number, item: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => item(index)).join(',')
const objectOf = (keys: number, bytes: number): string =>
  `{${listOf(keys, (index) => `"k${index}":"${'v'.repeat(Math.max(1, Math.floor(bytes / keys) - 12))}"`)}}`

async function send(method: string, path: string, body?: string): Promise<number> {
  const answer = await fetch(platform.url + path, {
    method,
    headers: { authorization: `Bearer ${platform.token}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body }),
  })
  await answer.arrayBuffer()
  return answer.status
}

/** Sends the request several times; the status, and the shortest of the longest holds. */
async function holdOf(request: () => Promise<number>): Promise<LoopHold & { readonly status: number }> {
  let status = 0
  const holds: LoopHold[] = []
  for (let count = 0; count < TRIES; count++) {
    await platform.takeHold()
    status = await request()
    assert.ok(status < 500, `answered ${status}`)
    holds.push(await platform.takeHold())
  }
  return { status, ms: Math.min(...holds.map(({ ms }) => ms)), cpuMs: Math.min(...holds.map(({ cpuMs }) => cpuMs)) }
}

const describeHold = ({ ms, cpuMs }: LoopHold): string => `${ms.toFixed(0)} ms (${cpuMs.toFixed(0)} ms of CPU)`

const message = (field: string, json: string): string => {
  const head = `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"hold-${++messages}","role":"ROLE_USER"`
  return field === 'metadata'
    ? `${head},"parts":[{"text":"hi"}],"metadata":{"m":${json}}}}}`
    : `${head},"parts":[{"${field}":${json}}]}}}`
}

/** Each route that takes a body, with the place of the attack in it and the limit of the body. */
const ATTACKS: readonly { route: string; bytes: number; path: () => string; body: (json: string) => string }[] = [
  ...['text', 'data', 'metadata'].map((field) => ({
    route: `POST a2a, in ${field}`,
    bytes: 8 * MIB - 400,
    path: () => `/workspaces/${workspaceId}/a2a`,
    body: (json: string) => message(field, json),
  })),
  ...['/workspaces', '/tokens', '/registry/heartbeat', '/login'].map((path) => ({
    route: `POST ${path}`,
    bytes: MIB - 400,
    path: () => path,
    body: (json: string) => `{"name":"x","role":"viewer","runtime":"mock","runtime_config":{"reply":${json}}}`,
  })),
  {
    route: 'POST activity',
    bytes: MIB - 400,
    path: () => `/workspaces/${workspaceId}/activity`,
    body: (json) => `{"type":"x","text":${json}}`,
  },
  {
    route: 'POST inbox/settle',
    bytes: 8 * MIB,
    path: () => `/workspaces/${externalId}/inbox/settle`,
    body: (json) => `{"key":{},"outcome":{"type":"done","parts":[{"data":${json}}]}}`,
  },
]

test('PL-23 the floor: how long a bare commit of 8 MiB to SQLite holds its thread here', (t) => {
  const database = new DatabaseSync(join(folder, 'floor.db'))
  database.exec('pragma journal_mode = wal; pragma synchronous = full; create table texts (value text)')
  const insert = database.prepare('insert into texts (value) values (?)')
  const times = Array.from({ length: TRIES }, () => {
    const start = performance.now()
    insert.run('x'.repeat(8 * MIB))
    return performance.now() - start
  })
  database.close()
  t.diagnostic(`a bare commit of 8 MiB took ${Math.min(...times).toFixed(0)} ms; an 8 MiB message needs one`)
})

for (const { route, bytes, path, body } of ATTACKS) {
  test(`PL-23 RE-4 ${route}: no body holds the event loop`, { timeout: 300_000 }, async (t) => {
    let longest = { ms: 0, cpuMs: 0, name: '' }
    for (const [name, make] of Object.entries(WORST)) {
      const json = make(bytes)
      const { status, ...hold } = await holdOf(() => send('POST', path(), body(json)))
      if (hold.ms > longest.ms) longest = { ...hold, name }
      if (hold.ms > HOLD_MS) t.diagnostic(`${route}: ${name} (${status}) held the loop for ${describeHold(hold)}`)
      assert.ok(hold.cpuMs < CPU_MS_FAILS, `${name} held the loop for ${describeHold(hold)}`)
    }
    t.diagnostic(`${route}: the longest hold was ${describeHold(longest)}, ${longest.name}`)
  })
}

/** Parts of a message of 8 MiB, or with as many values as it may have. */
const WORST_PARTS: Readonly<Record<string, () => object>> = {
  'one text': () => ({ text: 'x'.repeat(8 * MIB - 400) }),
  'other scripts': () => ({ text: '漢é'.repeat(1.5 * MIB) }),
  'a file': () => ({ raw: Buffer.alloc(8 * MIB - 400).toString('base64') }),
  'many keys': () => ({ data: JSON.parse(objectOf(9900, 7 * MIB)) }),
  '500,000 items': () => ({ data: Array.from({ length: 500_000 }, () => true) }),
}

test('PL-23 RE-4 gRPC: no message holds the event loop', { timeout: 300_000 }, async (t) => {
  const port = Number(/gRPC +\S+:(\d+)/.exec(platform.output())?.[1])
  const client = createGrpcClient(port, platform.token, { 'grpc.max_receive_message_length': -1 })
  t.after(() => client.close())
  for (const [name, part] of Object.entries(WORST_PARTS)) {
    const parts = [part()]
    const sendPart = async () => {
      const given = { messageId: `hold-${++messages}`, role: 'ROLE_USER', parts }
      const request = SendMessageRequest.fromJSON({ tenant: workspaceId, message: given } as JsonInput)
      const code = await client.call('sendMessage', request).then(
        () => statusCodes.OK,
        (error: ServiceError) => error.code,
      )
      assert.ok(
        code === statusCodes.OK || code === statusCodes.INVALID_ARGUMENT,
        `${name} ended with ${statusCodes[code]}`,
      )
      return 200
    }
    const hold = await holdOf(sendPart)
    t.diagnostic(`gRPC: ${name} held the loop for ${describeHold(hold)}`)
    assert.ok(hold.cpuMs < CPU_MS_FAILS, `${name} held the loop for ${describeHold(hold)}`)
  }
})

test('PL-23 RE-4 560,000 keys are refused before they are parsed, with the limit in the reason', async () => {
  const body = JSON.parse(message('metadata', objectOf(560_000, 6_000_000)))
  const answer = await platform.request('POST', `/workspaces/${workspaceId}/a2a`, body)
  assert.equal(answer.body.error.code, -32602)
  assert.match(answer.body.error.message, /more than 10000 values/)
})

test('PL-23 no read of what large messages left holds the event loop', { timeout: 300_000 }, async (t) => {
  const list = `{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"includeArtifacts":true,"pageSize":100}}`
  const large = message('text', `"${'x'.repeat(8 * MIB - 400)}"`)
  assert.equal(await send('POST', `/workspaces/${workspaceId}/a2a`, large), 200)
  const { tasks } = (await platform.rpc(workspaceId, 'ListTasks', { pageSize: 1 })).body.result
  const reads: Readonly<Record<string, () => Promise<number>>> = {
    ListTasks: () => send('POST', `/workspaces/${workspaceId}/a2a`, list),
    'GET /tasks/:id': () => send('GET', `/tasks/${tasks[0].id}`),
    'GET story': () => send('GET', `/messages/${tasks[0].id}/story`),
    'GET activity': () => send('GET', `/workspaces/${workspaceId}/activity?limit=500`),
    'GET /workspaces': () => send('GET', '/workspaces'),
    'GET dead-letters': () => send('GET', `/workspaces/${workspaceId}/dead-letters`),
  }
  for (const [name, read] of Object.entries(reads)) {
    const hold = await holdOf(read)
    t.diagnostic(`${name}: the longest hold was ${describeHold(hold)}`)
    assert.ok(hold.cpuMs < CPU_MS_FAILS, `${name} held the loop for ${describeHold(hold)}`)
  }
})
