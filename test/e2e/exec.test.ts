/** The exec backend through a real platform. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { pidsWithCommandLine, uniqueSeconds } from '../harness/live-processes.ts'
import { type PlatformUnderTest, reasonText, replyText, startPlatform } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

describe('exec through the platform', () => {
  let platform: PlatformUnderTest
  before(async () => {
    platform = await startPlatform()
  })
  after(() => platform.dispose())

  test('EX-2 EX-3 1 MiB of text comes back unchanged', async () => {
    const id = await platform.exec('cat')
    const text = `${'molekül 🧪\n'.repeat(100_000)}end`
    assert.ok(Buffer.byteLength(text) > 1024 * 1024)
    assert.equal(replyText(await platform.send(id, text)), text)
  })

  for (const cmd of [
    'sleep SECONDS & sleep SECONDS',
    'setsid sleep SECONDS',
    'trap "" TERM; setsid sh -c "sleep SECONDS"',
  ]) {
    test(`EX-4 a timeout kills the whole process tree and is the reason: ${cmd}`, async () => {
      const seconds = uniqueSeconds()
      const id = await platform.exec(cmd.replaceAll('SECONDS', seconds), {
        runtime_config: { timeout: '1s', max_attempts: 1 },
      })
      const task = await platform.send(id, 'go')
      assert.equal(task.status.state, 'TASK_STATE_FAILED')
      assert.match(reasonText(task), /timed out after 1s/)
      assert.deepEqual(pidsWithCommandLine(`sleep ${seconds}`), [])
    })
  }

  test('BK-9 a command that prints more than its limit is killed with a clear error', async () => {
    const word = randomUUID()
    const id = await platform.exec(`yes ${word}`, { max_attempts: 1 })
    const task = await platform.send(id, 'go')
    assert.equal(task.status.state, 'TASK_STATE_FAILED')
    assert.equal(task.status.message?.metadata?.['code'], 'too_large')
    assert.match(reasonText(task), /10 MiB|10485760/)
    assert.deepEqual(pidsWithCommandLine(word), [])
  })

  test('BK-1 BK-10 the command gets the whole request: ids, parts, sender and the raw envelope', async () => {
    const id = await platform.exec('cat', { runtime_config: { format: 'json' } })
    const parts = [{ text: 'look' }, { url: 'https://example.com/a.png', mediaType: 'image/png' }, { data: { n: 1 } }]
    const metadata = { mine: true, idempotency_key: 'key-7' }
    const task = await platform.send(id, '', { messageId: 'whole-1', parts, metadata })
    const request = JSON.parse(replyText(task) ?? '')
    assert.equal(request.workspace_id, id)
    assert.equal(request.caller_id, '')
    assert.equal(request.message_id, 'whole-1')
    assert.equal(request.idempotency_key, 'key-7')
    assert.equal(request.task_id, task.id)
    assert.equal(request.context_id, task.contextId)
    assert.equal(request.method, 'SendMessage')
    assert.deepEqual(request.parts, [
      { type: 'text', text: 'look' },
      { type: 'file', uri: 'https://example.com/a.png', mime_type: 'image/png' },
      { type: 'data', data: { n: 1 } },
    ])
    assert.deepEqual(request.sender, { kind: 'person', id: 'admin', name: 'admin', door: 'http' })
    assert.deepEqual(request.raw.params.message.metadata, metadata)
  })

  test("BK-2 the answer has the caller's version: 0.3 with kind, 1.0 without", async () => {
    const id = await platform.exec('cat')
    const message = {
      kind: 'message',
      messageId: randomUUID(),
      role: 'user',
      parts: [{ type: 'text', text: 'old form' }],
    }
    const { body } = await platform.rpc(id, 'message/send', { message })
    assert.equal(body.result.kind, 'task')
    assert.equal(body.result.status.state, 'completed')
    assert.deepEqual(body.result.artifacts[0].parts, [{ kind: 'text', text: 'old form' }])
    const task = await platform.send(id, 'one of')
    assert.deepEqual(task.artifacts?.[0]?.parts, [{ text: 'one of' }])
  })

  test('EX-5 the reason of a failed command contains its stderr', async () => {
    const id = await platform.exec('echo "no such luck" >&2; exit 3', { max_attempts: 1 })
    const task = await platform.send(id, 'go')
    assert.equal(task.status.state, 'TASK_STATE_FAILED')
    assert.match(reasonText(task), /no such luck/)
  })

  test("EX-6 the platform's secrets never reach a command, with or without pass_meta", async () => {
    const secrets = {
      MOLECULE_ADMIN_TOKEN: 'admin-secret-0123456789',
      TELEGRAM_BOT_TOKEN: 'telegram-secret',
      DISCORD_BOT_TOKEN: 'dis',
    }
    const own = await startPlatform({ env: { ...secrets, HARMLESS: 'stays' } })
    try {
      for (const passMeta of ['false', 'true']) {
        const id = await own.exec('env', { runtime_config: { pass_meta: passMeta } })
        const environment = replyText(await own.send(id, '')) ?? ''
        for (const secret of Object.values(secrets)) assert.ok(!environment.includes(`=${secret}\n`))
        assert.match(environment, /^HARMLESS=stays$/m)
        assert.equal(environment.includes(`MOLECULE_WORKSPACE_ID=${id}`), passMeta === 'true')
      }
    } finally {
      await own.dispose()
    }
  })

  test('EX-8 cancelling the task kills the subprocess at once', async () => {
    const seconds = uniqueSeconds()
    const id = await platform.exec(`sleep ${seconds}`)
    const { body } = await platform.rpc(id, 'SendMessage', {
      message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: 'go' }] },
      configuration: { returnImmediately: true },
    })
    const taskId = body.result.task.id
    await waitUntil(() => pidsWithCommandLine(`sleep ${seconds}`).length > 0)
    const canceled = await platform.rpc(id, 'CancelTask', { id: taskId })
    assert.equal(canceled.body.result.status.state, 'TASK_STATE_CANCELED')
    await waitUntil(() => pidsWithCommandLine(`sleep ${seconds}`).length === 0)
    const { body: workspace } = await platform.request('GET', `/workspaces/${id}`)
    assert.equal(workspace.queue_depth, 0)
  })

  test('RT-8 a hook in the configuration refuses a message with its own words, and another is answered', async () => {
    const before_turn = 'if grep -q deploy; then echo "Deployments wait until Monday."; exit 2; fi'
    const id = await platform.exec('cat', { runtime_config: { before_turn } })
    const refused = await platform.send(id, 'please deploy')
    assert.equal(refused.status.state, 'TASK_STATE_FAILED')
    assert.match(reasonText(refused) ?? '', /Deployments wait until Monday\./)
    assert.equal(replyText(await platform.send(id, 'please test')), 'please test')
  })
})
