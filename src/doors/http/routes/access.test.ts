import assert from 'node:assert/strict'
import test from 'node:test'
import { A2A_PATH, CALLER_KINDS, type CallerKind, secretsOfCallers } from '../../../../test/fakes/platform/callers.ts'
import { secretOf, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import {
  type DoorRequest,
  type DoorResponse,
  type OpenDoor,
  openDoor,
  sendParams,
  sendParamsV03,
} from '../../../../test/harness/open-door.ts'
import { ROUTES } from '../app.ts'
import { type ApiOperation, describeApi } from '../openapi/openapi.ts'

type Expected = Readonly<Record<CallerKind, number>>

/** In the order of CALLER_KINDS: none, wrong, viewer, caller, member, other, own, conversation, admin. */
const row = (...statuses: readonly number[]): Expected =>
  Object.fromEntries(CALLER_KINDS.map((caller, index) => [caller, statuses[index] ?? 0])) as Expected

const anyCaller = (status: number): Expected => row(...CALLER_KINDS.map(() => status))
const anyToken = (status: number): Expected => row(401, 401, status, status, status, status, status, status, status)
const people = (status: number): Expected => row(401, 401, status, 403, status, 403, 403, 403, status)
const members = (status: number): Expected => row(401, 401, 403, 403, status, 403, 403, 403, status)
const admins = (status: number): Expected => row(401, 401, 403, 403, 403, 403, 403, 403, status)

interface Rule {
  readonly expected: Expected
  /** Creates what the request needs; its path and body. */
  readonly prepare?: (opened: OpenDoor) => Promise<{ readonly path?: string; readonly body?: string }>
}

const someToken = async ({ fakePlatform }: OpenDoor) =>
  (await fakePlatform.tokens.create({ name: 'x', role: 'viewer' })).id

const reported = async () => ({ body: JSON.stringify({ workspace_id: WORKSPACE_ID }) })

const workers = (status: number): Expected => row(401, 401, 403, 403, 403, 403, status, 403, status)
const asBody = (body: object) => async () => ({ body: JSON.stringify(body) })
const LEASE = { conversationId: 'c', taskId: 't', messageId: 'm', epoch: 1 }
const CALL_FOR_WORK = { bridge: 'b', host: 'h', leases_max: 1, holding: [], wait_ms: 0 }

const RULES: Readonly<Record<string, Rule>> = {
  'get /': { expected: anyCaller(200) },
  'get /assets/{file}': { expected: anyCaller(404) },
  'get /icon.svg': { expected: anyCaller(200) },
  'get /health': { expected: anyCaller(200) },
  'get /ready': { expected: anyCaller(200) },
  'post /login': {
    expected: anyCaller(204),
    prepare: async ({ fakePlatform }) => ({ body: JSON.stringify({ code: fakePlatform.tokens.issueLoginCode() }) }),
  },
  'post /login-links': { expected: admins(201) },
  'post /logout': { expected: anyCaller(204) },
  'get /version': { expected: anyToken(200) },
  'get /openapi.json': { expected: anyToken(200) },
  'get /metrics': { expected: people(200) },
  'post /tokens': { expected: admins(201), prepare: async () => ({ body: '{"name":"x","role":"viewer"}' }) },
  'get /tokens': { expected: admins(200) },
  'post /tokens/{id}/rotate': {
    expected: admins(200),
    prepare: async (opened) => ({ path: `/tokens/${await someToken(opened)}/rotate` }),
  },
  'delete /tokens/{id}': {
    expected: admins(204),
    prepare: async (opened) => ({ path: `/tokens/${await someToken(opened)}` }),
  },
  // The fake platform runs its workspace itself, so it has no connect command.
  'post /workspaces/{id}/connect-command': { expected: admins(400) },
  'delete /workspaces/{id}/conversation-tokens': { expected: admins(204) },
  'get /me': { expected: anyToken(200) },
  'get /agents': { expected: members(200) },
  'get /folders': { expected: admins(200) },
  'post /stop': { expected: members(200) },
  'post /workspaces': { expected: admins(201), prepare: async () => ({ body: '{"name":"new"}' }) },
  'get /workspaces': { expected: anyToken(200) },
  'get /workspaces/{id}': { expected: row(401, 401, 200, 200, 200, 403, 200, 200, 200) },
  'get /workspaces/{id}/a2a/.well-known/agent-card.json': { expected: anyCaller(200) },
  'get /workspaces/{id}/a2a/.well-known/agent.json': { expected: anyCaller(200) },
  // The fake platform finds no workspace to change: an allowed caller gets 404, any other is refused before.
  'patch /workspaces/{id}': { expected: admins(404), prepare: async () => ({ body: '{"name":"new"}' }) },
  'delete /workspaces/{id}': {
    expected: admins(404),
    prepare: async () => ({ path: `/workspaces/${WORKSPACE_ID}?confirm=${WORKSPACE_ID}` }),
  },
  'post /workspaces/{id}/restart': { expected: members(404) },
  'post /workspaces/{id}/pause': { expected: members(404) },
  'post /workspaces/{id}/stop': { expected: members(404) },
  'post /workspaces/{id}/resume': { expected: members(404) },
  'post /registry/register': { expected: row(401, 401, 403, 403, 403, 403, 404, 403, 404), prepare: reported },
  'post /registry/heartbeat': { expected: row(401, 401, 403, 403, 403, 403, 404, 403, 404), prepare: reported },
  'get /registry/discover/{id}': { expected: row(401, 401, 200, 200, 200, 403, 200, 200, 200) },
  'get /registry/{id}/peers': { expected: row(401, 401, 404, 403, 404, 403, 404, 404, 404) },
  // No lease is held: an allowed caller is answered "stale". The platform runs this workspace, so it refuses a bridge.
  'post /workspaces/{id}/inbox/lease': { expected: workers(400), prepare: asBody(CALL_FOR_WORK) },
  'post /workspaces/{id}/inbox/begin': { expected: workers(200), prepare: asBody({ key: LEASE }) },
  'post /workspaces/{id}/inbox/extend': { expected: workers(200), prepare: asBody({ keys: [LEASE] }) },
  'post /workspaces/{id}/inbox/append': {
    expected: workers(200),
    prepare: asBody({ key: LEASE, from: 1, events: [{ type: 'text', delta: 'x' }] }),
  },
  'post /workspaces/{id}/inbox/settle': {
    expected: workers(200),
    prepare: asBody({ key: LEASE, host: 'h', outcome: { type: 'stopped' } }),
  },
  'post /workspaces/{id}/inbox/suspend': { expected: workers(200), prepare: asBody({ key: LEASE }) },
  'post /workspaces/{id}/inbox/resume': { expected: workers(200), prepare: asBody({ key: LEASE }) },
  'post /workspaces/{id}/inbox/ask': {
    expected: workers(200),
    prepare: asBody({ key: LEASE, question: { id: 'q', parts: [{ text: 'may I?' }] } }),
  },
  'get /workspaces/{id}/activity': { expected: row(401, 401, 404, 403, 404, 403, 404, 403, 404) },
  'get /workspaces/{id}/conversations': { expected: row(401, 401, 200, 403, 200, 403, 200, 403, 200) },
  'get /workspaces/{id}/conversations/{conversation}': { expected: row(401, 401, 404, 403, 404, 403, 404, 403, 404) },
  // Without a workspace in the query an agent searches its own.
  'get /messages': {
    expected: row(401, 401, 200, 403, 200, 200, 200, 403, 200),
    prepare: async () => ({ path: '/messages?search=x' }),
  },
  'get /workspaces/{id}/events': { expected: row(401, 401, 404, 403, 404, 403, 404, 403, 404) },
  // The artifact of a task that a person sent: its workspace sees it; a program, a peer and a child process do not.
  'get /tasks/{id}/artifacts/{artifact}': {
    expected: row(401, 401, 200, 404, 200, 404, 200, 404, 200),
    prepare: async ({ rpc }) => {
      const { json } = await rpc('SendMessage', sendParams('hello', { message: fresh() }))
      return { path: `/tasks/${json.result.task.id}/artifacts/reply` }
    },
  },
  // Without an upgrade an allowed caller gets 426.
  'get /ws': { expected: row(401, 401, 426, 403, 426, 426, 426, 403, 426) },
  'post /workspaces/{id}/activity': {
    expected: row(401, 401, 403, 403, 404, 403, 404, 404, 404),
    prepare: async () => ({ body: '{"type":"deployed","text":"version 2"}' }),
  },
  'put /workspaces/{id}/status': {
    expected: row(401, 401, 403, 403, 404, 403, 404, 404, 404),
    prepare: async () => ({ body: '{"text":"testing"}' }),
  },
  'get /tasks/{id}': { expected: anyToken(404), prepare: async () => ({ path: '/tasks/t_unknown' }) },
  'get /messages/{id}/story': { expected: anyToken(404), prepare: async () => ({ path: '/messages/m_unknown/story' }) },
  'get /workspaces/{id}/files': { expected: admins(404) },
  'get /workspaces/{id}/files/{path}': { expected: admins(404) },
  'put /workspaces/{id}/files/{path}': { expected: admins(404), prepare: async () => ({ body: 'content' }) },
  'delete /workspaces/{id}/files/{path}': { expected: admins(404) },
  'get /pending': { expected: members(200) },
  'get /needs-you': { expected: members(200) },
  'delete /damaged-replies/{message}': { expected: members(404) },
  'post /deliveries/{id}': { expected: members(404), prepare: async () => ({ body: '{"decision":"arrived"}' }) },
  'get /workspaces/{id}/rules': { expected: members(200) },
  'delete /workspaces/{id}/rules/{rule}': { expected: members(404) },
  'post /budgets/{id}': { expected: members(404), prepare: async () => ({ body: '{"decision":"stop"}' }) },
  'post /pending/{id}': { expected: members(404), prepare: async () => ({ body: '{"decision":"allow"}' }) },
  'post /workspaces/{id}/memories': {
    expected: row(401, 401, 403, 403, 404, 403, 404, 404, 404),
    prepare: asBody({ text: 'x' }),
  },
  'get /workspaces/{id}/memories': { expected: row(401, 401, 403, 403, 404, 403, 404, 404, 404) },
  'delete /workspaces/{id}/memories/{memory}': { expected: row(401, 401, 403, 403, 404, 403, 404, 404, 404) },
  // Only the guard is tried here: an MCP call also needs its headers.
  'post /workspaces/{id}/mcp': { expected: row(401, 401, 403, 403, 415, 403, 415, 415, 415), prepare: asBody({}) },
  'get /workspaces/{id}/mcp': { expected: row(401, 401, 403, 403, 405, 403, 405, 405, 405) },
  'delete /workspaces/{id}/mcp': { expected: row(401, 401, 403, 403, 405, 403, 405, 405, 405) },
  'get /overview': { expected: people(200) },
  'get /delegations/open': { expected: people(200) },
  'post /workspaces/{id}/schedules': { expected: members(404), prepare: asBody({ cron: '0 9 * * *', text: 'x' }) },
  'get /schedules': { expected: people(200) },
  'patch /schedules/{schedule}': { expected: members(404), prepare: asBody({ paused: true }) },
  'post /schedules/{schedule}/run': { expected: members(404) },
  'delete /schedules/{schedule}': { expected: members(404) },
  'post /channels': { expected: admins(404), prepare: asBody({ kind: 'socket', token: 'secret' }) },
  'get /channels': { expected: people(200) },
  'delete /channels/{channel}': { expected: admins(404) },
  'get /channel-kinds/{kind}': { expected: admins(404) },
  'post /channels/{channel}/webhook': { expected: anyCaller(404) },
  'put /channels/{channel}/bindings/{place}': {
    expected: admins(404),
    prepare: asBody({ workspace_id: WORKSPACE_ID }),
  },
  'delete /channels/{channel}/bindings/{place}': { expected: admins(404) },
  'get /pairings': { expected: members(200) },
  'post /pairings/{pairing}/approve': { expected: members(404) },
  'post /pairings/{pairing}/deny': { expected: members(404) },
  'get /usage': { expected: people(200) },
  'get /workspaces/{id}/delegations': { expected: row(401, 401, 200, 403, 200, 403, 200, 403, 200) },
  'get /workspaces/{id}/usage': { expected: row(401, 401, 404, 403, 404, 403, 404, 403, 404) },
  'get /workspaces/{id}/dead-letters': { expected: people(200) },
  // There are no dead letters: an allowed caller gets 404, any other is refused before.
  'post /workspaces/{id}/dead-letters/{message}/replay': { expected: members(404) },
  'delete /workspaces/{id}/dead-letters/{message}': { expected: members(404) },
}

interface MethodRule {
  /** HTTP statuses, or the code of a JSON-RPC error that is sent with 200. */
  readonly expected: Expected
  readonly params: (taskId: string) => object
  readonly v03?: { readonly method: string; readonly params: (taskId: string) => object }
}

const NOT_FOUND = -32001
const byId = (id: string) => ({ id })
let messages = 0
const fresh = () => ({ messageId: `fresh-${++messages}` })

const METHOD_RULES: Readonly<Record<string, MethodRule>> = {
  SendMessage: {
    expected: row(401, 401, 403, 200, 200, 403, 403, 403, 200),
    params: () => sendParams('hello', { message: fresh() }),
    v03: { method: 'message/send', params: () => sendParamsV03(`hello ${++messages}`) },
  },
  // The task was sent by a person: a program does not see it, its workspace does, a child process does not.
  GetTask: {
    expected: row(401, 401, 200, NOT_FOUND, 200, 403, 200, NOT_FOUND, 200),
    params: byId,
    v03: { method: 'tasks/get', params: byId },
  },
  ...pushRules(),
  SendStreamingMessage: {
    expected: row(401, 401, 403, 200, 200, 403, 403, 403, 200),
    params: () => sendParams('hello', { message: fresh() }),
    v03: { method: 'message/stream', params: () => sendParamsV03(`hello ${++messages}`) },
  },
  ListTasks: { expected: row(401, 401, 200, 200, 200, 403, 200, 200, 200), params: () => ({}) },
  SubscribeToTask: {
    expected: row(401, 401, 200, NOT_FOUND, 200, 403, 200, NOT_FOUND, 200),
    params: byId,
    v03: { method: 'tasks/resubscribe', params: byId },
  },
  GetExtendedAgentCard: {
    expected: row(401, 401, 200, 200, 200, 403, 200, 200, 200),
    params: () => ({}),
    v03: { method: 'agent/getAuthenticatedExtendedCard', params: () => ({}) },
  },
  CancelTask: {
    expected: row(401, 401, 403, NOT_FOUND, 200, 403, NOT_FOUND, NOT_FOUND, 200),
    params: byId,
    v03: { method: 'tasks/cancel', params: byId },
  },
}

/** A caller that may end the task may set, see and delete its push configs. */
function pushRules(): Record<string, MethodRule> {
  const expected = row(401, 401, 403, NOT_FOUND, 200, 403, NOT_FOUND, NOT_FOUND, 200)
  const url = 'https://hook.test/'
  const named = (taskId: string) => ({ taskId, id: 'hook' })
  const namedV03 = (id: string) => ({ id, pushNotificationConfigId: 'hook' })
  const v03 = (method: string, params: MethodRule['params']) => ({
    v03: { method: `tasks/pushNotificationConfig/${method}`, params },
  })
  return {
    CreateTaskPushNotificationConfig: {
      expected,
      params: (taskId) => ({ taskId, url }),
      ...v03('set', (taskId) => ({ taskId, pushNotificationConfig: { url } })),
    },
    GetTaskPushNotificationConfig: { expected, params: named, ...v03('get', namedV03) },
    ListTaskPushNotificationConfigs: { expected, params: (taskId) => ({ taskId }), ...v03('list', byId) },
    DeleteTaskPushNotificationConfig: { expected, params: named, ...v03('delete', namedV03) },
  }
}

const document = describeApi(ROUTES, '1.2.3')
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ name: `${method} ${path}`, method, path, operation })),
)

test('PL-12 every route and method has an access rule in this test, and no rule is left over', () => {
  const ruled = operations
    .filter(({ operation }) => operation['x-action'] !== 'a2a' && operation['x-a2a-method'] === undefined)
    .map(({ name }) => name)
  assert.deepEqual(ruled.sort(), Object.keys(RULES).sort())
  assert.deepEqual(Object.keys(a2aMethods()).sort(), Object.keys(METHOD_RULES).sort())
})

for (const { name, method, path, operation } of operations) {
  const rule = RULES[name]
  if (rule === undefined) continue
  test(`PL-12 ${name}: each kind of caller gets its status`, async (t) => {
    const opened = await openDoor(t)
    const secrets = await secretsOfCallers(opened)
    for (const caller of CALLER_KINDS) {
      const made = (await rule.prepare?.(opened)) ?? {}
      const at = made.path ?? path.replace('{id}', WORKSPACE_ID).replace('{message}', 'm_unknown')
      const body = made.body === undefined ? {} : { body: made.body }
      const answer = await opened.sendRequest(at, { method: method.toUpperCase(), token: secrets[caller], ...body })
      assert.equal(answer.status, rule.expected[caller], `${caller}: ${answer.text.slice(0, 200)}`)
      if (answer.status === 403) assert.match(answer.json.error.message, /^the token "/)
    }
    agreesWithDocument(rule.expected, operation)
  })
}

for (const [name, rule] of Object.entries(METHOD_RULES)) {
  const forms: readonly (readonly [string, MethodRule['params']])[] = [
    [name, rule.params],
    ...(rule.v03 === undefined ? [] : [[rule.v03.method, rule.v03.params] as const]),
  ]
  for (const [method, params] of forms) {
    test(`PL-12 A2A ${method}: each kind of caller gets its status`, async (t) => {
      const opened = await openDoor(t)
      const secrets = await secretsOfCallers(opened)
      for (const caller of CALLER_KINDS) {
        const { json } = await opened.rpc('SendMessage', askingTask())
        const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: params(json.result.task.id) })
        const post: DoorRequest = { method: 'POST', token: secrets[caller], body }
        const answer = await opened.sendRequest(A2A_PATH, post)
        assert.equal(outcomeOf(answer), rule.expected[caller], `${caller}: ${answer.text.slice(0, 300)}`)
      }
    })
  }
}

for (const { name, method, path, operation } of operations) {
  const rule = METHOD_RULES[operation['x-a2a-method'] ?? '']
  if (rule === undefined) continue
  test(`PL-12 A2A by REST, ${name}: the same statuses as by JSON-RPC`, async (t) => {
    const opened = await openDoor(t)
    const secrets = await secretsOfCallers(opened)
    for (const caller of CALLER_KINDS) {
      const { json } = await opened.rpc('SendMessage', askingTask())
      const { id } = json.result.task
      const at = path.replace('{id}', WORKSPACE_ID).replace('{task}', id).replace('{config}', 'hook')
      const hasBody = path.includes('/message:') || (method === 'post' && path.endsWith('/pushNotificationConfigs'))
      const body = hasBody ? { body: JSON.stringify(rule.params(id)) } : {}
      const answer = await opened.sendRequest(at, { method: method.toUpperCase(), token: secrets[caller], ...body })
      const expected: number = rule.expected[caller]
      assert.equal(answer.status, expected === NOT_FOUND ? 404 : expected, `${caller}: ${answer.text.slice(0, 300)}`)
    }
  })
}

/** A task that asks its caller for input, so that it can be cancelled and subscribed to. */
const askingTask = () => sendParams('ask', { message: fresh() })

function outcomeOf({ status, json }: DoorResponse): number {
  return json?.error?.code === NOT_FOUND ? NOT_FOUND : status
}

/** A role that the API document does not list always gets 403. */
function agreesWithDocument(expected: Expected, operation: ApiOperation): void {
  if (operation['x-action'] === 'open') return
  const roles = { viewer: 'viewer', caller: 'caller', member: 'member', own: 'workspace', admin: 'admin' } as const
  for (const [caller, role] of Object.entries(roles)) {
    if (!operation['x-roles'].includes(role)) assert.equal(expected[caller as CallerKind], 403, caller)
  }
}

function a2aMethods() {
  const found = operations.find(({ operation }) => operation['x-action'] === 'a2a')
  return found?.operation['x-a2a-methods'] ?? {}
}

test('PL-8 a workspace sends to its sibling as itself, and reads the reply', async (t) => {
  const { fakePlatform, sendRequest } = await openDoor(t)
  const sibling = await fakePlatform.workspaces.create({ name: 'sibling' })
  const path = `/workspaces/${sibling.id}/a2a`
  const token = secretOf('conversation')
  const call = (method: string, params: object) =>
    sendRequest(path, { method: 'POST', token, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }) })
  const sent = await call('SendMessage', sendParams('hello'))
  assert.equal(sent.json.result.task.status.state, 'TASK_STATE_COMPLETED')
  const [letter] = fakePlatform.letters
  assert.deepEqual(
    [letter?.principal, letter?.sender.kind, letter?.sender.id],
    [`ws:${WORKSPACE_ID}/conversation-1`, 'agent', WORKSPACE_ID],
  )
  const got = await call('GetTask', { id: sent.json.result.task.id })
  assert.equal(got.json.result.id, sent.json.result.task.id)
})

test('PL-8 a denial is 403 and names the workspaces that the caller may talk to', async (t) => {
  const opened = await openDoor(t)
  const secrets = await secretsOfCallers(opened)
  const refused = await opened.rpc('SendMessage', sendParams('hello'), { token: secrets.other ?? '' })
  assert.equal(refused.status, 403)
  assert.match(refused.json.error.message, /may talk to its parent, its children and its siblings/)
  const itself = await opened.rpc('SendMessage', sendParams('hello'), { token: secretOf('workspace') })
  assert.match(itself.json.error.message, /cannot talk to itself/)
  const { secret } = await opened.fakePlatform.tokens.create({ name: 'ci', role: 'caller', workspaces: ['ws_1'] })
  const unlisted = await opened.rpc('SendMessage', sendParams('hello'), { token: secret })
  assert.match(unlisted.json.error.message, /the token "ci" does not reach this workspace: it may use only ws_1/)
})

test('PL-8 the list shows the workspaces that the token reaches, and their settings only to admins and members', async (t) => {
  const opened = await openDoor(t)
  const secrets = await secretsOfCallers(opened)
  const listed = async (token: string | undefined) => {
    const { json } = await opened.sendRequest('/workspaces', { token })
    return json.workspaces as Record<string, unknown>[]
  }
  const names = async (token: string | undefined) => (await listed(token)).map(({ name }) => name)
  assert.deepEqual(await names(secrets.viewer), ['echo', 'sibling', 'stranger'])
  assert.deepEqual(await names(secrets.caller), ['echo'])
  assert.deepEqual(await names(secrets.own), ['echo', 'sibling'])
  assert.deepEqual(await names(secrets.other), ['sibling', 'stranger'])
  assert.ok((await listed(secrets.member)).every((workspace) => 'runtime_config' in workspace))
  for (const caller of ['viewer', 'caller', 'own'] as const) {
    assert.ok((await listed(secrets[caller])).every((one) => !('runtime_config' in one) && !('working_dir' in one)))
  }
})
