/** A workspace whose agent is a chat endpoint: conversation history, usage, and the hourly limit. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startChatEndpoint } from '../fakes/chat-endpoint.ts'
import { createExternalWorkspace, startBridge, temporaryHome } from '../harness/bridge.ts'
import { replyText, startPlatform, startPlatformFor, waitForFinalTask } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

const endpoint = await startChatEndpoint()
after(() => endpoint.stop())

test('AG-9 RT-3 RT-13 CL-8 the platform keeps the history, shows the usage, and enforces the hourly limit until it is raised', async () => {
  const platform = await startPlatform()
  try {
    const { status, body } = await platform.request('POST', '/workspaces', {
      name: 'Ada',
      runtime: 'openai',
      role: 'Be brief.',
      model: 'small',
      runtime_config: { url: endpoint.urlFor('echo'), max_turns_per_hour: 2, headers: { 'X-Secret': 'hush' } },
    })
    assert.equal(status, 201, JSON.stringify(body))
    assert.doesNotMatch(JSON.stringify(body), /hush/)
    const message = { contextId: 'talk' }
    assert.equal(
      (await platform.send(body.id, 'my name is Ada', message)).artifacts?.[0]?.parts[0]?.text,
      'my name is Ada',
    )
    await platform.send(body.id, 'who am I?', message)
    assert.deepEqual(endpoint.calls.at(-1)?.body.messages, [
      { role: 'system', content: 'Your role: Be brief.' },
      { role: 'user', content: 'my name is Ada' },
      { role: 'assistant', content: 'my name is Ada' },
      { role: 'user', content: 'who am I?' },
    ])
    assert.equal(endpoint.calls.at(-1)?.headers['x-secret'], 'hush')
    const usage = await platform.request('GET', `/workspaces/${body.id}/usage?days=2&messages=1`)
    const { duration_ms: durationMs, ...total } = usage.body.total
    assert.deepEqual(total, {
      turns: 2,
      unknown_turns: 0,
      unknown_cost_turns: 2,
      input_tokens: 22,
      output_tokens: 10,
      cost_usd: null,
    })
    assert.ok(durationMs > 0)
    assert.deepEqual([usage.body.days.length, usage.body.messages.length], [1, 1])
    assert.equal((await platform.request('GET', `/workspaces/${body.id}/usage?days=91`)).status, 400)
    const { body: third } = await platform.rpc(body.id, 'SendMessage', {
      message: { messageId: 'third', role: 'ROLE_USER', parts: [{ text: 'and now?' }], ...message },
      configuration: { returnImmediately: true },
    })
    const { id } = third.result.task
    await waitUntil(async () => {
      const { body: shown } = await platform.rpc(body.id, 'GetTask', { id })
      return /2 turns an hour .* used up/.test(shown.result.status.message?.parts[0]?.text ?? '')
    })
    assert.equal(endpoint.calls.length, 2)
    const needs = await platform.request('GET', `/needs-you?workspace_id=${body.id}`)
    const [need] = needs.body.needs_you
    assert.match(
      need.reason,
      /^its turns of this hour are used up \(max_turns_per_hour\): 1 message waits; .* or at once/,
    )
    const [{ name, label, method, path, body: raised }] = need.actions
    assert.deepEqual([name, label, raised], ['more', 'Allow 4 an hour', { runtime_config: { max_turns_per_hour: 4 } }])
    assert.equal((await platform.request(method, path, raised)).status, 200)
    assert.equal(replyText(await waitForFinalTask(platform, body.id, id)), 'and now?')
    assert.deepEqual((await platform.request('GET', `/needs-you?workspace_id=${body.id}`)).body.needs_you, [])
  } finally {
    await platform.dispose()
  }
})

test('CN-2 RT-3 RT-13 behind a bridge the platform keeps the history and enforces the hourly limit too', async (t) => {
  const platform = await startPlatformFor(t)
  const workspace = await createExternalWorkspace(platform, { runtime_config: { max_turns_per_hour: 2 } })
  const args = [
    '--backend',
    'openai',
    '--backend-opt',
    `url=${endpoint.urlFor('echo')}`,
    '--backend-opt',
    'model=small',
  ]
  await startBridge(t, { url: platform.url, workspace, home: temporaryHome(t), args })
  const before = endpoint.calls.length
  for (const text of ['my name is Bo', 'who am I?']) await platform.send(workspace.id, text, { contextId: 'talk' })
  assert.deepEqual(
    endpoint.calls.at(-1)?.body.messages.map(({ content }) => content),
    ['my name is Bo', 'my name is Bo', 'who am I?'],
  )
  await platform.rpc(workspace.id, 'SendMessage', {
    message: { messageId: 'third', contextId: 'talk', role: 'ROLE_USER', parts: [{ text: 'and now?' }] },
    configuration: { returnImmediately: true },
  })
  await waitUntil(async () => {
    const { body } = await platform.rpc(workspace.id, 'ListTasks', {})
    return /2 turns an hour .* used up/.test(JSON.stringify(body))
  })
  assert.equal(endpoint.calls.length - before, 2)
})
