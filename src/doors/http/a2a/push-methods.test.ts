import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFakePushContext, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { readStrictPushConfig, readStrictPushConfigV03 } from '../../../../test/fakes/strict-clients.ts'
import { openA2a } from '../../../../test/harness/clients/a2a-in-memory.ts'
import { sendParams } from '../../../../test/harness/open-door.ts'
import { MoleculeError } from '../../../errors.ts'
import type { PushConfigs, StoredPush } from '../../../inbox/delivery.ts'

const HEADER = 'X-Molecule-Webhook-Secret'

/** A door whose push configs are kept, and that notes what happens to them, in order. */
function openPush() {
  const notes: unknown[] = []
  const kept: StoredPush[] = []
  let failed: string | undefined
  const basic = createFakePushContext()
  const configs: PushConfigs = {
    ...basic.configs,
    async put({ workspaceId, version, config, afterSeq }) {
      notes.push(['put', config.taskId, config.id, config.url, afterSeq])
      const stored = { workspaceId, taskId: config.taskId, id: config.id, version, config, cursor: { seq: 0, k: 0 } }
      kept.push(stored as StoredPush)
      return stored as StoredPush
    },
    list: async (_workspaceId, taskId) =>
      kept.filter((each) => each.taskId === taskId).map((each) => (failed === undefined ? each : { ...each, failed })),
    async remove(name) {
      notes.push(['remove', name])
      return true
    },
    async nudge(workspaceId, taskId) {
      notes.push(['nudge', workspaceId, taskId])
    },
  }
  const push = {
    configs,
    async check(url: string) {
      notes.push(['check', url])
      if (url.includes('forbidden')) throw new MoleculeError('forbidden', `${url} may not be called`)
    },
    wake: () => void notes.push('wake'),
  }
  const door = openA2a(({ reception }) => ({
    push,
    reception: {
      ...reception,
      snapshot: async (id, view) => {
        const found = await reception.snapshot(id, view)
        return found && { ...found, lastSeq: 41 }
      },
    },
  }))
  const takeNotes = () => notes.splice(0)
  const giveUp = (reason: string) => {
    failed = reason
  }
  return { ...door, takeNotes, giveUp }
}

test('PL-5 a push config is checked, stored after the rows so far, and woken; its key is shown once', async () => {
  const { rpc, takeNotes } = openPush()
  await rpc('SendMessage', sendParams('hello'))
  takeNotes()
  const created = await rpc('CreateTaskPushNotificationConfig', {
    taskId: 'task-1',
    id: 'mine',
    url: 'https://a.test/',
  })
  assert.deepEqual(takeNotes(), [
    ['check', 'https://a.test/'],
    ['put', 'task-1', 'mine', 'https://a.test/', 41],
    'wake',
  ])
  const secret = String(created.headers[HEADER])
  assert.match(secret, /^mol_webhook_[\w-]{43}$/)
  assert.ok(!created.text.includes(secret), 'the body has only fields of A2A')
  const shown = await rpc('GetTaskPushNotificationConfig', { taskId: 'task-1', id: 'mine' })
  assert.deepEqual([shown.json.result.id, shown.headers[HEADER]], ['mine', undefined])
  assert.ok(!shown.text.includes(secret))
})

test('PL-5 a config without an id has that of its task, and a URL that may not be called is refused', async () => {
  const { rpc, takeNotes } = openPush()
  await rpc('SendMessage', sendParams('hello'))
  takeNotes()
  await rpc('CreateTaskPushNotificationConfig', { taskId: 'task-1', url: 'https://a.test/' })
  assert.deepEqual(takeNotes()[1], ['put', 'task-1', 'task-1', 'https://a.test/', 41])
  const refused = await rpc('CreateTaskPushNotificationConfig', { taskId: 'task-1', url: 'https://forbidden.test/' })
  assert.match(refused.json.error.message, /may not be called/)
  assert.deepEqual(takeNotes(), [['check', 'https://forbidden.test/']])
})

test('PL-5 configs are found by their id, the first without one, and listed in the format of the version', async () => {
  const { rpc } = openPush()
  await rpc('SendMessage', sendParams('hello'))
  for (const id of ['one', 'two'])
    await rpc('CreateTaskPushNotificationConfig', { taskId: 'task-1', id, url: `https://${id}.test/` })
  const got = async (method: string, params: object) => (await rpc(method, params)).json
  const get = 'GetTaskPushNotificationConfig'
  assert.equal((await got(get, { taskId: 'task-1', id: 'two' })).result.url, 'https://two.test/')
  const older = await got('tasks/pushNotificationConfig/get', { id: 'task-1' })
  assert.equal(older.result.pushNotificationConfig.id, 'one')
  assert.equal(
    (await got(get, { taskId: 'task-1', id: 'three' })).error.message,
    'task task-1 has no push configuration three',
  )
  await rpc('SendMessage', sendParams('other'))
  const none = await got('tasks/pushNotificationConfig/get', { id: 'task-2' })
  assert.equal(none.error.message, 'task task-2 has no push configuration')
  const listed = await got('ListTaskPushNotificationConfigs', { taskId: 'task-1' })
  assert.deepEqual(
    [listed.result.configs.map(({ id }: { id: string }) => id), listed.result.nextPageToken],
    [['one', 'two'], ''],
  )
  const listed03 = await got('tasks/pushNotificationConfig/list', { id: 'task-1' })
  assert.deepEqual(
    listed03.result.map((each: { pushNotificationConfig: { id: string } }) => each.pushNotificationConfig.id),
    ['one', 'two'],
  )
})

test('PL-5 PL-19 answers have only the fields that strict clients accept, also of a config that was given up', async () => {
  const { rpc, giveUp } = openPush()
  await rpc('SendMessage', sendParams('hello'))
  const authentication = { scheme: 'Bearer', credentials: 'c' }
  const config = { taskId: 'task-1', id: 'one', url: 'https://one.test/', token: 't', authentication }
  readStrictPushConfig((await rpc('CreateTaskPushNotificationConfig', config)).json.result)
  const pushNotificationConfig = {
    id: 'two',
    url: 'https://two.test/',
    token: 't',
    authentication: { schemes: ['Bearer'], credentials: 'c' },
  }
  const set = await rpc('tasks/pushNotificationConfig/set', { taskId: 'task-1', pushNotificationConfig })
  readStrictPushConfigV03(set.json.result)
  giveUp('the receiver answered HTTP 500')
  const named = { taskId: 'task-1', id: 'one' }
  readStrictPushConfig((await rpc('GetTaskPushNotificationConfig', named)).json.result)
  const listed = (await rpc('ListTaskPushNotificationConfigs', { taskId: 'task-1' })).json.result.configs
  assert.equal(listed.length, 2)
  for (const each of listed) readStrictPushConfig(each)
  readStrictPushConfigV03((await rpc('tasks/pushNotificationConfig/get', { id: 'task-1' })).json.result)
  const listed03 = (await rpc('tasks/pushNotificationConfig/list', { id: 'task-1' })).json.result
  assert.equal(listed03.length, 2)
  for (const each of listed03) readStrictPushConfigV03(each)
})

test('PL-5 a deleted config needs its id, and a deletion answers in the format of the version', async () => {
  const { rpc, takeNotes } = openPush()
  await rpc('SendMessage', sendParams('hello'))
  takeNotes()
  const name = { workspaceId: WORKSPACE_ID, taskId: 'task-1', id: 'one' }
  const fresh = await rpc('DeleteTaskPushNotificationConfig', { taskId: 'task-1', id: 'one' })
  assert.deepEqual([fresh.json.result, takeNotes()], [{}, [['remove', name]]])
  const older = await rpc('tasks/pushNotificationConfig/delete', { id: 'task-1', pushNotificationConfigId: 'one' })
  assert.deepEqual([older.json.result, takeNotes()], [null, [['remove', name]]])
})

test('PL-12 for a caller that may not see the task, its push configs do not exist', async () => {
  const { rpc, takeNotes } = openPush()
  await rpc('SendMessage', sendParams('hello'))
  await rpc('CreateTaskPushNotificationConfig', { taskId: 'task-1', id: 'one', url: 'https://a.test/' })
  takeNotes()
  const params = { taskId: 'task-1', id: 'one', url: 'https://a.test/' }
  for (const token of ['caller-secret', 'workspace-secret'])
    for (const method of ['Create', 'Get', 'Delete', 'List'].map((verb) => `${verb}TaskPushNotificationConfig`)) {
      const name = method.startsWith('List') ? `${method}s` : method
      assert.equal((await rpc(name, params, { token })).json.error.code, -32001, `${token} ${name}`)
    }
  assert.deepEqual(takeNotes(), [])
})

test('PL-5 a config that comes with a message is checked before the message is admitted and stored after it', async () => {
  const { rpc, takeNotes, fakePlatform } = openPush()
  const withPush = (text: string, url: string) =>
    sendParams(text, { configuration: { taskPushNotificationConfig: { url, id: 'inline' } } })
  const refused = await rpc('SendMessage', withPush('hello', 'https://forbidden.test/'))
  assert.ok(refused.json.error)
  assert.deepEqual([fakePlatform.letters.length, takeNotes()], [0, [['check', 'https://forbidden.test/']]])
  for (const [method, text] of [
    ['SendMessage', 'first'],
    ['SendStreamingMessage', 'second'],
  ] as const) {
    const sent = await rpc(method, withPush(text, 'https://a.test/'))
    assert.match(String(sent.headers[HEADER]), /^mol_webhook_/)
    const task = `task-${fakePlatform.letters.length}`
    assert.deepEqual(takeNotes(), [['check', 'https://a.test/'], ['put', task, 'inline', 'https://a.test/', 0], 'wake'])
  }
})

test('PL-5 a message to a task that exists nudges its webhooks, a first message does not', async () => {
  const { rpc, takeNotes } = openPush()
  await rpc('SendMessage', sendParams('first'))
  await rpc('SendMessage', sendParams('now', { configuration: { returnImmediately: true } }))
  assert.deepEqual(takeNotes(), [])
  await rpc('SendMessage', sendParams('again', { message: { taskId: 'task-1' } }))
  await rpc(
    'SendMessage',
    sendParams('later', { message: { taskId: 'x' }, configuration: { returnImmediately: true } }),
  )
  await rpc('SendStreamingMessage', sendParams('stream', { message: { taskId: 'x' } }))
  assert.deepEqual(
    takeNotes(),
    [3, 4, 5].map((number) => ['nudge', WORKSPACE_ID, `task-${number}`]),
  )
})

test('PL-5 a platform without webhooks refuses them', async () => {
  const { rpc } = openA2a(({ push: _, ...options }) => ({ ...options, push: undefined }) as never)
  await rpc('SendMessage', sendParams('hello'))
  const refused = await rpc('ListTaskPushNotificationConfigs', { taskId: 'task-1' })
  assert.match(refused.json.error.message, /push notifications are not served here/)
})
