/**
 * Walks the table of who may do what (`src/api/who-may.ts`) on a running platform: one real call for each role and
 * action, by HTTP with a token of the role and in a chat as a person of the role. An action without a call here does not
 * compile.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { ACTIONS, type Action, CHAT_ROLES, type ChatRole, chatRolesOf, rolesOf } from '../../src/api/who-may.ts'
import type { Author, Place } from '../../src/doors/chat/channel.ts'
import { TOKEN_ROLES, type TokenRole } from '../../src/workspaces/tokens.ts'
import { type SocketService, startSocketService } from '../fakes/socket-service.ts'
import { createExternalWorkspace } from '../harness/bridge.ts'
import { ADA, addSocketBot, BOB, EVE, pairingPath } from '../harness/clients/socket-bot.ts'
import { createHandWorker, type HandWorker } from '../harness/hand-worker.ts'
import { newMessage, type PlatformUnderTest, startPlatformFor } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

const BOT = 'bot'
const PEOPLE: Readonly<Record<ChatRole, Author>> = { owner: ADA, user: BOB, stranger: EVE }

/** Everything that a call may need. */
interface World {
  readonly platform: PlatformUnderTest
  readonly secrets: Readonly<Record<TokenRole, string>>
  /** The workspace of the agent tokens; a bridge runs it. */
  readonly own: string
  /** Its sibling, on the list of the caller. It echoes, and sleeps after "wait". */
  readonly sibling: string
  readonly bot: SocketService
  readonly otherService: SocketService
  /** Asks for permissions in a chat. */
  readonly asker: HandWorker
}

interface Call {
  readonly method?: string
  readonly path: string
  readonly body?: object
  /** Of an allowed call; default: 200 to 299. 404: the call passes the check, and there is nothing to do. */
  readonly allowed?: number
}

type Prepare = (world: World, role: TokenRole) => Call | Promise<Call>

const post = (path: string, body: object = {}): Call => ({ method: 'POST', path, body })
const rpc = (id: string, method: string, params: object): Call =>
  post(`/workspaces/${id}/a2a`, { jsonrpc: '2.0', id: 1, method, params })
let numbers = 0
const fresh = (name: string): string => `${name}-${++numbers}`

/** A task that the role sees: its own, where it may send one. */
async function taskFor(world: World, role: TokenRole): Promise<string> {
  const sender = rolesOf('message.send').includes(role) ? role : 'admin'
  const params = { message: newMessage('wait'), configuration: { returnImmediately: true } }
  const { body } = await send(world, sender, rpc(world.sibling, 'SendMessage', params))
  return body.result.task.id
}

const SEND_FILE = { name: 'send_file', arguments: { path: 'a.txt' } }
const EXEC = { runtime: 'exec', runtime_config: { cmd: 'cat' } }

const CALLS: Readonly<Record<Action, Prepare>> = {
  'platform.read': () => ({ path: '/version' }),
  'metrics.read': () => ({ path: '/metrics' }),
  'token.handle': () => post('/tokens', { name: fresh('t'), role: 'admin' }),
  'agent.read': () => ({ path: '/agents' }),
  'folder.read': () => ({ path: '/folders' }),
  'workspace.create': () => post('/workspaces', { name: fresh('new'), ...EXEC }),
  'workspace.read': ({ own, sibling }, role) => ({ path: `/workspaces/${role === 'caller' ? sibling : own}` }),
  'workspace.change': ({ sibling }) => ({
    ...post(`/workspaces/${sibling}`, { role: fresh('role') }),
    method: 'PATCH',
  }),
  'workspace.model': ({ sibling }) => ({ ...post(`/workspaces/${sibling}`, { model: fresh('m') }), method: 'PATCH' }),
  async 'workspace.delete'({ platform }) {
    const id = await platform.exec('cat', { name: fresh('old') })
    return { method: 'DELETE', path: `/workspaces/${id}?confirm=${id}` }
  },
  'workspace.restart': ({ sibling }) => post(`/workspaces/${sibling}/restart`),
  'workspace.pause': ({ sibling }) => post(`/workspaces/${sibling}/resume`),
  'registry.report': ({ own }) => post('/registry/heartbeat', { workspace_id: own }),
  'registry.peers': ({ own }) => ({ path: `/registry/${own}/peers` }),
  'inbox.work': ({ own }) =>
    post(`/workspaces/${own}/inbox/lease`, { bridge: 'b', host: 'h', leases_max: 1, holding: [], wait_ms: 0 }),
  'status.report': ({ own }) => ({ ...post(`/workspaces/${own}/status`, { text: 'testing' }), method: 'PUT' }),
  'activity.read': ({ own }) => ({ path: `/workspaces/${own}/activity` }),
  'activity.report': ({ own }) => post(`/workspaces/${own}/activity`, { type: 'deployed', text: 'version 2' }),
  'file.read': ({ sibling }) => ({ path: `/workspaces/${sibling}/files` }),
  'file.write': ({ sibling }) => ({ ...post(`/workspaces/${sibling}/files/note.txt`, {}), method: 'PUT' }),
  'file.send': ({ own }) =>
    post(`/workspaces/${own}/mcp`, { jsonrpc: '2.0', id: 1, method: 'tools/call', params: SEND_FILE }),
  'mcp.use': ({ own }) => post(`/workspaces/${own}/mcp`, { jsonrpc: '2.0', id: 1, method: 'tools/list' }),
  'memory.read': ({ own }) => ({ path: `/workspaces/${own}/memories` }),
  'memory.write': ({ own }) => post(`/workspaces/${own}/memories`, { text: fresh('a fact') }),
  'message.send': ({ sibling }) => rpc(sibling, 'SendMessage', { message: newMessage('hello') }),
  'task.read': ({ sibling }) => rpc(sibling, 'ListTasks', {}),
  'task.cancel': async (world, role) => rpc(world.sibling, 'CancelTask', { id: await taskFor(world, role) }),
  'task.push': async (world, role) =>
    rpc(world.sibling, 'ListTaskPushNotificationConfigs', { taskId: await taskFor(world, role) }),
  'schedule.read': () => ({ path: '/schedules' }),
  'schedule.handle': ({ sibling }) => post(`/workspaces/${sibling}/schedules`, { cron: '0 9 1 1 *', text: 'x' }),
  'channel.read': () => ({ path: '/channels' }),
  'channel.handle': ({ otherService: { token, apiUrl } }) =>
    post('/channels', { kind: 'socket', name: 'other', token, api_url: apiUrl, replace: true }),
  'channel.bind': ({ sibling }) => ({
    ...post(`/channels/${BOT}/bindings/${fresh('place')}`, { workspace_id: sibling }),
    method: 'PUT',
  }),
  'pairing.read': () => ({ path: '/pairings' }),
  'pairing.handle': () => post(pairingPath(BOT, { ...EVE, id: fresh('person') })),
  'pairing.owner': () => post(pairingPath(BOT, { ...EVE, id: fresh('person') }), { role: 'owner' }),
  'pending.read': () => ({ path: '/pending' }),
  'pending.answer': () => ({ ...post('/pending/nothing', { decision: 'deny' }), allowed: 404 }),
  'dead-letter.read': () => ({ path: '/overview' }),
  'dead-letter.handle': ({ sibling }) => ({
    ...post(`/workspaces/${sibling}/dead-letters/m_unknown/replay`),
    allowed: 404,
  }),
}

/** What a person does in the chat; the text of the bot's answer, and what it says to a person who may. */
type ChatCall = (world: World, author: Author) => Promise<{ readonly said: string; readonly allowed: RegExp }>

const command =
  (name: string, allowed: RegExp, argumentOf: (world: World) => string = () => ''): ChatCall =>
  async (world, author) => {
    const place = world.bot.newPlace('group')
    return { said: await world.bot.command({ place, author, name, argument: argumentOf(world) }), allowed }
  }

const CHAT_CALLS: Partial<Record<Action, ChatCall>> = {
  'platform.read': command('help', /\/help/),
  'workspace.read': command('where', /answers here/),
  'activity.read': command('usage', /today/),
  'dead-letter.handle': command('retry', /to run again/),
  'workspace.model': command('model', /uses m-/, () => fresh('m')),
  'task.cancel': command('stop', /Nothing runs/),
  'channel.bind': command('bind', /answers every message/, ({ sibling }) => sibling),
  async 'message.send'({ bot }, author) {
    const place = bot.newPlace('direct')
    bot.say({ place, author, text: 'hello' })
    await waitUntil(() => bot.written(place).length > 0, 'the bot answers')
    return { said: bot.written(place)[0]?.text ?? '', allowed: /^echo hello/ }
  },
  async 'pairing.handle'({ bot }, author) {
    const place = bot.newPlace('direct')
    bot.say({ place, author: ADA, text: 'hello' })
    bot.say({ place: bot.newPlace('direct'), author: { ...EVE, id: fresh('stranger') }, text: 'let me in' })
    const messageId = await promptIn(place, bot)
    return { said: await bot.press({ place, messageId, label: 'Ignore', author }), allowed: /^Ignored/ }
  },
  async 'pending.answer'(world, author) {
    const { bot, asker, platform } = world
    const place = bot.newPlace('group')
    await platform.request('PUT', `/channels/${BOT}/bindings/${place.id}`, { workspace_id: asker.workspaceId })
    bot.say({ place, author: ADA, text: 'go' })
    const turn = await asker.lease()
    await turn.ask('may I?', { tool: 'shell', subject: 'make test' })
    const messageId = await promptIn(place, bot)
    const said = await bot.press({ place, messageId, label: 'Deny', author })
    await turn.answer('done')
    return { said, allowed: /^Denied/ }
  },
}

async function promptIn(place: Place, bot: SocketService): Promise<string> {
  const prompt = () => bot.written(place).find(({ buttons }) => buttons.length > 0)
  await waitUntil(() => prompt() !== undefined, 'the prompt has buttons')
  return prompt()?.id ?? ''
}

async function send({ platform, secrets }: World, role: TokenRole, { method = 'GET', path, body }: Call) {
  const response = await fetch(platform.url + path, {
    method,
    headers: {
      Authorization: `Bearer ${secrets[role]}`,
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, text, body: text.startsWith('{') ? JSON.parse(text) : undefined }
}

async function openWorld(t: TestContext): Promise<World> {
  const platform = await startPlatformFor(t)
  const cmd = 'read text; [ "$text" = wait ] && sleep 300; printf "echo %s" "$text"'
  const sibling = await platform.exec(cmd, { name: 'sibling' })
  const own = (await createExternalWorkspace(platform, { name: 'own' })).id
  const create = async (role: TokenRole, more: object = {}) => {
    const { status, body } = await platform.request('POST', '/tokens', { name: role, role, ...more })
    assert.equal(status, 201, JSON.stringify(body))
    return body.token as string
  }
  const secrets = {
    admin: platform.token,
    member: await create('member'),
    viewer: await create('viewer'),
    caller: await create('caller', { workspaces: [sibling] }),
    workspace: await create('workspace', { workspace_id: own }),
    conversation: await create('conversation', { workspace_id: own, conversation_id: 'c-1' }),
  }
  const bot = await addSocketBot(t, platform, { name: BOT, workspaceId: sibling, owner: ADA })
  assert.equal((await platform.request('POST', pairingPath(BOT, BOB))).status, 200)
  const otherService = await startSocketService()
  t.after(() => otherService.close())
  const asker = await createHandWorker(platform, { name: 'asker' })
  return { platform, secrets, own, sibling, bot, otherService, asker }
}

test('PL-12 RE-9 each role may do by HTTP what the table says, and nothing else', async (t) => {
  const world = await openWorld(t)
  const wrong: string[] = []
  for (const action of ACTIONS) {
    for (const role of TOKEN_ROLES) {
      const call = await CALLS[action](world, role)
      const { status, text, body } = await send(world, role, call)
      const isGood = status >= 200 && status < 300 && body?.error === undefined
      const isDone = call.allowed === undefined ? isGood : status === call.allowed
      const isRight = rolesOf(action).includes(role) ? isDone : status === 403
      if (!isRight) wrong.push(`${role} ${action}: ${status} ${text.slice(0, 200)}`)
    }
  }
  assert.deepEqual(wrong, [])
})

test('PL-12 GW-4 GW-9 RE-9 each person may do in a chat what the table says, and nothing else', async (t) => {
  const world = await openWorld(t)
  for (const action of ACTIONS) {
    const run = CHAT_CALLS[action]
    assert.equal(run !== undefined, chatRolesOf(action).length > 0, `a call for ${action} in a chat`)
    if (run === undefined) continue
    for (const role of CHAT_ROLES) {
      const { said, allowed } = await run(world, PEOPLE[role])
      assert.equal(allowed.test(said), chatRolesOf(action).includes(role), `${role} ${action}: ${said}`)
    }
  }
})

test('PL-12 GW-4 RE-9 a member lets people talk to a bot and neither makes, changes nor removes an owner', async (t) => {
  const world = await openWorld(t)
  const { sibling, bot, platform } = world
  const asMember = (path: string, body?: object) => send(world, 'member', post(path, body))
  const itself = { ...EVE, id: 'member-itself' }
  assert.equal((await asMember(pairingPath(BOT, itself), { role: 'owner' })).status, 403)
  for (const state of ['approve', 'deny'])
    assert.equal((await asMember(pairingPath(BOT, ADA).replace(/approve$/, state))).status, 403, state)
  assert.equal((await asMember(pairingPath(BOT, itself))).status, 200)
  const place = bot.newPlace('direct')
  const said = await bot.command({ place, author: itself, name: 'model', argument: 'costly' })
  assert.match(said, /only an owner/)
  assert.equal((await platform.request('GET', `/workspaces/${sibling}`)).body.model ?? null, null)
  assert.match(await bot.command({ place, author: ADA, name: 'model', argument: 'other' }), /uses other/)
})
