/** Every published client against the real platform; the table in `docs/a2a.md` says what works, and is compared. */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { text as readText } from 'node:stream/consumers'
import { after, before, type TestContext, test } from 'node:test'
import manifest from '../../package.json' with { type: 'json' }
import { serve } from '../harness/loopback-server.ts'
import { type PlatformUnderTest, sendWithoutWaiting, startPlatform } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'
import { createClients, type MatrixClient } from './clients.ts'
import { loadClients } from './install-clients.ts'

let platform: PlatformUnderTest
/** A workspace that answers at once. */
let quick: string
/** A workspace that prints lines one after the other. */
let slow: string
/** A workspace that does not end. */
let endless: string

const fetchWithoutToken = globalThis.fetch
const clients = createClients({
  load: await loadClients(),
  token: () => platform.token,
  fetchWithToken(input, init) {
    const request = new Request(input, init)
    request.headers.set('Authorization', `Bearer ${platform.token}`)
    return fetchWithoutToken(request)
  },
  sdkVersion: manifest.dependencies['@a2a-js/sdk'],
  sdkVersionV03: manifest.devDependencies['a2a-v03'].replace(/^.*@/, ''),
})

const COLUMNS = ['send', 'stream', 'get', 'cancel', 'push', 'reused id'] as const
const worked = new Map(clients.map(({ name }) => [name, new Set<string>()]))

before(async () => {
  platform = await startPlatform({ args: ['--grpc-port', '0', '--allow-outbound', '127.0.0.1/32'] })
  quick = (await platform.request('POST', '/workspaces', { name: 'quick', runtime: 'mock' })).body.id
  slow = await platform.exec('for n in 1 2 3 4; do echo line $n; sleep 0.2; done', { max_concurrent_tasks: 8 })
  endless = await platform.exec('sleep 600', { max_concurrent_tasks: 8 })
  // a2a-ai-provider prints every event, and the AI SDK that it is an older provider.
  console.log = () => undefined
  Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false })
})
after(() => platform.dispose())

async function receive(t: TestContext): Promise<{ readonly url: string; readonly bodies: string[] }> {
  const bodies: string[] = []
  const { url } = await serve(t, (request, response) => {
    readText(request).then((body) => {
      bodies.push(body)
      response.writeHead(200).end()
    }, assert.fail)
  })
  return { url: `${url}/hook`, bodies }
}

const urlOf = (workspaceId: string) => `${platform.url}/workspaces/${workspaceId}/a2a`

for (const client of clients) {
  const { name } = client
  const passes = (column: (typeof COLUMNS)[number]) => worked.get(name)?.add(column)

  test(`PL-5 ${name} sends a message and gets the reply`, async () => {
    assert.equal(await client.send(urlOf(quick), 'hello'), 'echo: hello')
    passes('send')
  })

  test(`PL-5 ${name} streams a reply while it is made`, async () => {
    const texts = await client.stream(urlOf(slow), 'go')
    assert.ok(texts.length > 1, JSON.stringify(texts))
    // Character by character: nothing is dropped, and nothing comes twice.
    assert.equal(texts.join(''), 'line 1\nline 2\nline 3\nline 4\n')
    passes('stream')
  })

  const { push, sendAs } = client
  if (push !== undefined)
    test(`PL-5 PL-19 ${name} sets a webhook, which is called`, async (t) => {
      const receiver = await receive(t)
      const taskId = await sendWithoutWaiting(platform, slow, 'go')
      assert.equal(await push(urlOf(slow), taskId, receiver.url), receiver.url)
      await waitUntil(() => /TASK_STATE_COMPLETED|"completed"/.test(receiver.bodies.at(-1) ?? ''))
      assert.match(receiver.bodies.join(), /line 1\\nline 2\\nline 3\\nline 4\\n/)
      passes('push')
    })

  if (sendAs !== undefined)
    test(`PL-5 IN-1 ${name} sends other content under a used message id`, async () => {
      const id = `fixed ${name}`
      for (const word of ['one', 'two', 'one']) assert.equal(await sendAs(urlOf(quick), id, word), `echo: ${word}`)
      passes('reused id')
    })

  if (client.get !== undefined || client.cancel !== undefined)
    test(`PL-5 ${name} gets and cancels a task`, async () => {
      const taskId = await sendWithoutWaiting(platform, endless, 'go')
      if (client.get !== undefined) {
        assert.match(await client.get(urlOf(endless), taskId), /submitted|working/)
        passes('get')
      }
      if (client.cancel === undefined) return
      assert.equal(await client.cancel(urlOf(endless), taskId), 'canceled')
      passes('cancel')
    })
}

test('PL-5 docs/a2a.md says what each published client can do', () => {
  const text = readFileSync(new URL('../../docs/a2a.md', import.meta.url), 'utf8')
  const rows = text.split('\n').map((line) => line.split('|').map((cell) => cell.trim()))
  const heading = rows.findIndex(([, first, ...rest]) => first === 'client' && rest[0] === 'send')
  const end = rows.findIndex((row, index) => index > heading && row.length === 1)
  const documented = rows.slice(heading + 2, end).map((row) => row.slice(1, 8).join(' | '))
  assert.deepEqual(documented, clients.map(rowOf))
})

function rowOf({ name }: MatrixClient): string {
  const [, packageName, rest] = /^(\S+) (.*)$/.exec(name) ?? []
  const cells = COLUMNS.map((column) => (worked.get(name)?.has(column) ? 'yes' : '-'))
  return [`\`${packageName}\` ${rest}`, ...cells].join(' | ')
}
