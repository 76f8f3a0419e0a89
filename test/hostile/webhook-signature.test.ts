/** Forged webhook calls: the receiver that `docs/webhooks.md` shows accepts the platform's calls and no others. */

import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { serve } from '../harness/loopback-server.ts'
import { startPlatformFor } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

type IsFromMolecule = (body: string, header: string | undefined, secret: string) => boolean

/** The example of the documentation, run as it is. */
async function documentedCheck(): Promise<IsFromMolecule> {
  const page = await readFile(new URL('../../docs/webhooks.md', import.meta.url), 'utf8')
  const [, code = ''] = /```js\n(.*?)```/s.exec(page) ?? []
  const source = `${code}\nexport { isFromMolecule }`
  const module = await import(`data:text/javascript;base64,${Buffer.from(source).toString('base64')}`)
  return module.isFromMolecule
}

interface ReceivedCall {
  readonly body: string
  readonly signature: string | undefined
}

async function receive(t: TestContext): Promise<{ url: string; calls: ReceivedCall[] }> {
  const calls: ReceivedCall[] = []
  const { url } = await serve(t, (request, response) => {
    text(request).then((body) => {
      calls.push({ body, signature: request.headers['x-molecule-signature']?.toString() })
      response.writeHead(200).end()
    }, assert.fail)
  })
  return { url: `${url}/hook`, calls }
}

test('PL-19 each webhook is signed with the secret of its config, which is shown once', async (t) => {
  const isFromMolecule = await documentedCheck()
  const receiver = await receive(t)
  const platform = await startPlatformFor(t, { args: ['--allow-outbound', '127.0.0.1/32'] })
  const id = await platform.exec('sleep 1; cat')
  const message = { messageId: 'm-1', role: 'ROLE_USER', parts: [{ text: 'grüße' }] }
  const configuration = { returnImmediately: true, taskPushNotificationConfig: { id: 'inline', url: receiver.url } }
  const call = (method: string, params: object) =>
    fetch(`${platform.url}/workspaces/${id}/a2a`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${platform.token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
  const secretIn = ({ headers }: Response) => headers.get('x-molecule-webhook-secret') ?? ''
  const sent = await call('SendMessage', { message, configuration })
  const inlineSecret = secretIn(sent)
  const taskId = ((await sent.json()) as { result: { task: { id: string } } }).result.task.id
  const created = await call('CreateTaskPushNotificationConfig', { taskId, id: 'set', url: receiver.url })
  const setSecret = secretIn(created)
  assert.doesNotMatch(await created.text(), /mol_webhook_/)
  assert.match(inlineSecret, /^mol_webhook_[\w-]{43}$/)
  assert.match(setSecret, /^mol_webhook_[\w-]{43}$/)
  assert.notEqual(inlineSecret, setSecret)

  const final = () => receiver.calls.filter(({ body }) => body.includes('TASK_STATE_COMPLETED'))
  await waitUntil(() => final().length === 2)
  const signedBy = (secret: string) =>
    receiver.calls.filter(({ body, signature }) => isFromMolecule(body, signature, secret)).length
  assert.equal(
    signedBy(inlineSecret) + signedBy(setSecret),
    receiver.calls.length,
    'every call has one valid signature',
  )
  assert.ok(signedBy(inlineSecret) > 0 && signedBy(setSecret) > 0)
  for (const { body, signature = '' } of receiver.calls) {
    for (const secret of [inlineSecret, setSecret]) {
      assert.equal(isFromMolecule(`${body} `, signature, secret), false, 'another body')
      const later = signature.replace(/t=(\d+)/, (_, seconds) => `t=${Number(seconds) + 1}`)
      assert.equal(isFromMolecule(body, later, secret), false, 'another time')
    }
  }

  const named = { taskId, id: 'set' }
  const shown = await platform.rpc(id, 'GetTaskPushNotificationConfig', named)
  const listed = await platform.rpc(id, 'ListTaskPushNotificationConfigs', { taskId })
  const log = await readFile(join(platform.dataDir, 'molecule.log'), 'utf8')
  for (const seen of [JSON.stringify(shown.body), JSON.stringify(listed.body), log, platform.output()]) {
    assert.doesNotMatch(seen, /mol_webhook_/)
  }
  const again = secretIn(await call('CreateTaskPushNotificationConfig', { ...named, url: receiver.url }))
  assert.match(again, /^mol_webhook_[\w-]{43}$/)
  assert.notEqual(again, setSecret, 'a config that is set again has a new secret')
})
