import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { WebSocket } from 'ws'
import { manualClock } from '../../../../test/fakes/manual-clock.ts'
import { createFakeActivityLogs } from '../../../../test/fakes/platform/fake-activity.ts'
import { countTimers } from '../../../../test/fakes/timer-count.ts'
import type { Identity } from '../../../workspaces/tokens.ts'
import type { Workspace, WorkspaceLoad } from '../../../workspaces/workspace.ts'
import type { WorkspaceLogs } from '../../workspace-logs.ts'
import type { PlatformWatch, WatchedWorkspace } from './platform-watch.ts'
import { createSocketReader } from './reader.ts'

const LIMITS = { keepAliveMs: 1000, unsentBytesMax: 1000, unsentMs: 5000 }
const ADMIN = { role: 'admin', tokenId: 'admin', name: 'admin' } as Identity

/** The end of the platform of a socket. While its client does not read, no send is done. */
class FakeSocket extends EventEmitter {
  readonly OPEN = 1
  readyState = 1
  readonly messages: Record<string, unknown>[] = []
  readonly closes: unknown[] = []
  reads = true
  private readonly undone: (() => void)[] = []

  send(text: string, done?: () => void): void {
    this.messages.push(JSON.parse(text))
    if (done === undefined) return
    if (this.reads) queueMicrotask(done)
    else this.undone.push(done)
  }

  readAll(): void {
    this.reads = true
    for (const done of this.undone.splice(0)) done()
  }

  close(code: number, reason: string): void {
    this.closes.push([code, reason])
    this.disconnect()
  }

  terminate(): void {
    this.closes.push('terminated')
    this.disconnect()
  }

  disconnect(): void {
    this.readyState = 3
    this.emit('close')
  }

  /** A message of the client. */
  say(message: unknown): void {
    const text = typeof message === 'string' ? message : JSON.stringify(message)
    this.emit('message', Buffer.from(text), false)
  }
}

const watched = (id: string, fields: object = {}): WatchedWorkspace => ({
  card: undefined,
  workspace: {
    id,
    name: id,
    role: '',
    runtime: 'exec',
    tier: 2,
    maxConcurrentTasks: 1,
    maxAttempts: 4,
    workingDir: '/w',
    runtimeConfig: {},
    status: 'online',
    createdAtMs: 0,
    queueDepth: 0,
    running: 0,
    ...fields,
  } as Workspace & WorkspaceLoad,
  fingerprint: JSON.stringify([id, fields]),
})

function openReader(identity: Identity = ADMIN, change: (given: WorkspaceLogs) => Partial<WorkspaceLogs> = () => ({})) {
  const socket = new FakeSocket()
  const logs = createFakeActivityLogs(['a', 'b', 'c'])
  const { clock, timers } = countTimers(manualClock())
  const watchers = new Set<() => void>()
  const lines: unknown[] = []
  const note = (fields: object, message: string) => void lines.push([message, fields])
  const state = { all: [watched('a'), watched('b')] as WatchedWorkspace[], needs: { count: 2, mark: 'm1' } }
  const platform: PlatformWatch = {
    watch(callback) {
      watchers.add(callback)
      return () => watchers.delete(callback)
    },
    workspaces: async () => state.all,
    needsYou: async () => state.needs,
    hint: () => undefined,
  }
  const reader = createSocketReader(socket as unknown as WebSocket, {
    subscriptionLimits: { countNames: () => undefined, countRefused: () => undefined },
    identity,
    requestId: 'req_1',
    platform,
    clock,
    limits: LIMITS,
    logs: { ...logs.logs, ...change(logs.logs) },
    log: { debug: note, info: note, warn: note, error: note },
  })
  const rest = async () => {
    for (let turn = 0; turn < 12; turn++) await nextTurn()
  }
  /** What the client received since the last call: a short form of each message. */
  let taken = 0
  const take = async () => {
    await rest()
    const fresh = socket.messages.slice(taken)
    taken = socket.messages.length
    return fresh.map(shortOf)
  }
  const changePlatform = (all: readonly WatchedWorkspace[], needs = state.needs) => {
    Object.assign(state, { all, needs })
    for (const callback of watchers) callback()
  }
  return { socket, logs, reader, clock, timers, watchers, lines, take, rest, changePlatform }
}

function shortOf(message: Record<string, unknown>): string {
  const { type, workspace, seq, id, count, status } = message
  const names = (message['workspaces'] as { id: string }[] | undefined)?.map((each) => each.id)
  const kept = [type, workspace, seq, id, count, status, names && `[${names}]`].filter((each) => each !== undefined)
  return kept.join(' ')
}

test('PL-7 a subscription names at most 2,000 logs, each with at most 64 characters', async () => {
  const { socket, take } = openReader()
  const named = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`w${at}`, null]))
  socket.say({ subscribe: named(2000) })
  socket.say({ subscribe: named(2001) })
  socket.say({ subscribe: { ['x'.repeat(64)]: null } })
  socket.say({ subscribe: { ['x'.repeat(65)]: null } })
  const answers: string[] = []
  for (let round = 0; round < 1000 && answers.length < 2003; round++) answers.push(...(await take()))
  assert.deepEqual(answers.slice(2000), ['error 400', `error ${'x'.repeat(64)} 404`, 'error 400'])
})

test('PL-9 a client may have 16 unread messages; one more closes its socket', async () => {
  for (const [count, closes] of [
    [16, []],
    [17, [[1008, 'too many unread messages']]],
  ] as const) {
    const { socket, rest } = openReader()
    for (let message = 0; message < count; message++) socket.say('{')
    assert.deepEqual(socket.closes, closes)
    await rest()
  }
})

test('PL-7 _platform begins with all workspaces and what needs a person, then tells each change once', async () => {
  const { socket, take, changePlatform, watchers } = openReader()
  socket.say({ subscribe: { _platform: null } })
  assert.deepEqual(await take(), ['snapshot _platform [a,b]', 'needs_you _platform 2'])
  assert.equal(watchers.size, 1)
  changePlatform([watched('a'), watched('b', { status: 'failed' }), watched('c')])
  assert.deepEqual(await take(), ['changed _platform b', 'created _platform c'])
  assert.partialDeepStrictEqual(socket.messages.at(-1), { id: 'c', state: { id: 'c', name: 'c', status: 'online' } })
  changePlatform([watched('a'), watched('b', { status: 'failed' }), watched('c')])
  assert.deepEqual(await take(), [])
  changePlatform([watched('c')], { count: 3, mark: 'm2' })
  assert.deepEqual(await take(), ['deleted _platform a', 'deleted _platform b', 'needs_you _platform 3'])
  changePlatform([watched('a'), watched('c')], { count: 3, mark: 'm2' })
  assert.deepEqual(await take(), ['created _platform a'])
  socket.say({ subscribe: { _platform: null } })
  assert.deepEqual(await take(), ['snapshot _platform [a,c]', 'needs_you _platform 3'])
  assert.equal(watchers.size, 1, 'a second subscription does not watch twice')
})

test('PL-7 changes of the platform are only for a client that follows it', async () => {
  const { socket, take, watchers } = openReader()
  socket.say({ subscribe: { a: 0 } })
  assert.deepEqual([await take(), watchers.size], [['subscribed a 0'], 0])
})

test('PL-7 with others: now, the logs that are not named begin now and new ones at their beginning', async () => {
  const { socket, logs, take, changePlatform } = openReader()
  for (let row = 0; row < 3; row++) logs.add('a')
  logs.add('b')
  logs.add('c')
  socket.say({ subscribe: { a: 1 }, others: 'now' })
  assert.deepEqual(await take(), [
    ...['subscribed a 1', 'snapshot _platform [a,b]', 'needs_you _platform 2', 'subscribed b 1'],
    ...['events a 2', 'events a 3'],
  ])
  changePlatform([watched('a', { status: 'busy' }), watched('b'), watched('c')])
  assert.deepEqual(await take(), ['changed _platform a', 'created _platform c', 'subscribed c 0', 'events c 1'])
  socket.say({ subscribe: {}, others: 'now' })
  assert.deepEqual(await take(), ['snapshot _platform [a,b,c]', 'needs_you _platform 2'], 'all are followed already')
})

test('PL-7 with others: beginning, all logs that are not named begin at their first row', async () => {
  const { socket, logs, take } = openReader()
  logs.add('a')
  logs.add('b')
  socket.say({ subscribe: { nowhere: null, b: 1 }, others: 'beginning' })
  assert.deepEqual(await take(), [
    ...['error nowhere 404', 'subscribed b 1', 'snapshot _platform [a,b]', 'needs_you _platform 2'],
    ...['subscribed a 0', 'events a 1'],
  ])
})

test('PL-7 a log that is named and refused does not begin with the others, and one without a number begins at 0', async () => {
  const { socket, logs, take } = openReader(ADMIN, () => ({ heads: async () => new Map() }))
  for (let row = 0; row < 9; row++) logs.add('a')
  logs.prune('a', 5)
  socket.say({ subscribe: { a: 3 }, others: 'now' })
  assert.deepEqual(await take(), [
    ...['error a 410', 'snapshot _platform [a,b]', 'needs_you _platform 2', 'subscribed b 0'],
  ])
})

test('PL-7 without others, new workspaces are told and their logs are not followed', async () => {
  const { socket, logs, take, changePlatform } = openReader()
  logs.add('c')
  socket.say({ subscribe: { _platform: null, c: 1 } })
  await take()
  changePlatform([watched('a'), watched('b'), watched('d')])
  assert.deepEqual(await take(), ['created _platform d'])
})

test('PL-7 a new workspace whose log is followed already does not begin again', async () => {
  const { socket, logs, take, changePlatform } = openReader()
  logs.add('c')
  socket.say({ subscribe: { c: 1 }, others: 'now' })
  await take()
  changePlatform([watched('a'), watched('b'), watched('c')])
  assert.deepEqual(await take(), ['created _platform c'])
})

test('PL-12 the token of a workspace follows only its own log, and does not see what needs a person', async () => {
  const own = { role: 'workspace', tokenId: 't', name: 'own', workspaceId: 'a' } as Identity
  const { socket, logs, take, changePlatform } = openReader(own)
  logs.add('a')
  logs.add('b')
  socket.say({ subscribe: { b: 0 }, others: 'beginning' })
  assert.deepEqual(await take(), ['error b 403', 'snapshot _platform [a,b]', 'subscribed a 0', 'events a 1'])
  changePlatform([watched('a'), watched('b'), watched('c'), watched('d', { parentId: 'c' })], { count: 9, mark: 'm9' })
  assert.deepEqual(await take(), ['created _platform c'], 'a peer is seen, its log and its children are not')
})

test('PL-12 what needs a person is told to admins and members only', async () => {
  for (const [role, told] of [
    ['admin', 1],
    ['member', 1],
    ['viewer', 0],
  ] as const) {
    const { socket, take } = openReader({ ...ADMIN, role })
    socket.say({ subscribe: { _platform: null } })
    assert.equal((await take()).filter((text) => text.startsWith('needs_you')).length, told, role)
  }
})

test('RE-3 the next page is read only after the client has read the page before', async () => {
  const { socket, logs, take, timers, clock } = openReader()
  for (let row = 0; row < 40; row++) logs.add('a')
  socket.reads = false
  socket.say({ subscribe: { a: 0 } })
  assert.deepEqual(await take(), ['subscribed a 0'])
  assert.deepEqual([logs.pages(), timers()], [0, 1])
  clock.advance(4999)
  assert.deepEqual(socket.closes, [])
  socket.readAll()
  assert.equal((await take()).length, 40)
  assert.deepEqual([timers(), socket.listenerCount('close')], [0, 1])
  clock.advance(60_000)
  assert.deepEqual(socket.closes, [])
})

test('RE-3 a client that has gone is watched and read for no more', async () => {
  const { socket, logs, reader, rest, watchers, timers } = openReader()
  socket.say({ subscribe: { a: 0 }, others: 'now' })
  await rest()
  assert.equal(watchers.size, 1)
  socket.disconnect()
  assert.equal(watchers.size, 0)
  const pages = logs.pages()
  const { length } = socket.messages
  logs.add('a')
  reader.hint('a')
  socket.say({ subscribe: { _platform: null } })
  await rest()
  assert.deepEqual([logs.pages(), socket.messages.length, watchers.size, timers()], [pages, length, 0, 0])
})

test('RE-3 a client that goes while its subscription is read leaves no watch', async () => {
  const found = Promise.withResolvers<number>()
  const { socket, rest, watchers } = openReader(ADMIN, () => ({ resolveCursor: () => found.promise }))
  socket.say({ subscribe: { a: 0, _platform: null } })
  await rest()
  socket.disconnect()
  found.resolve(0)
  await rest()
  assert.equal(watchers.size, 0)
})

test('RE-3 a store that fails closes the socket, so that its client resumes later', async () => {
  const { socket, rest, lines } = openReader(ADMIN, () => ({
    page: async () => {
      throw new Error('the store is gone')
    },
  }))
  socket.say({ subscribe: { a: 0 } })
  await rest()
  assert.deepEqual(socket.closes, [[1011, 'try again']])
  assert.match(String(lines), /a socket was closed by an error/)
})
