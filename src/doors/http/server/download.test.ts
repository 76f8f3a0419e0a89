import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { type TestContext, test } from 'node:test'
import { secretOf } from '../../../../test/fakes/platform/fake-platform.ts'
import { openRoutes, recordPart } from '../../../../test/harness/clients/route-calls.ts'
import { openDoor, sendParams } from '../../../../test/harness/open-door.ts'
import { waitUntil } from '../../../../test/harness/wait.ts'
import type { Reception } from '../../../inbox/reception.ts'
import { createMetrics } from '../../../metrics.ts'
import type { Artifact, Part, Task } from '../../../protocol/a2a.ts'

/** Opens a door with a task whose reply has these parts; a function that requests its artifact. */
async function withReply(t: TestContext, ...parts: Part[]) {
  const { rpc, sendRequest } = await openDoor(t)
  const { json } = await rpc('SendMessage', sendParams('x', { message: { parts } }))
  const { id } = json.result.task
  return (query = '', artifact = 'reply') =>
    sendRequest(`/tasks/${id}/artifacts/${artifact}${query}`, { token: secretOf('viewer') })
}

test('PL-17 an artifact is sent as a file, for download only', async (t) => {
  const raw = Buffer.from([0, 255, 128, 10]).toString('base64')
  const get = await withReply(t, { raw, mediaType: 'image/png', filename: 'chärt.png' })
  const { status, headers } = await get()
  assert.equal(status, 200)
  assert.equal(headers['content-type'], 'image/png')
  assert.equal(headers['content-length'], '4')
  assert.equal(headers['content-disposition'], `attachment; filename="ch_rt.png"; filename*=UTF-8''ch%C3%A4rt.png`)
  assert.equal(headers['x-content-type-options'], 'nosniff')
  assert.match(String(headers['content-security-policy']), /sandbox/)
})

test('PL-17 an artifact with several parts is JSON, and each part is available by its number', async (t) => {
  const parts = [{ text: 'hello' }, { data: { a: [1] } }, { url: 'https://elsewhere.test/x' }]
  const get = await withReply(t, ...parts)
  assert.deepEqual((await get()).json, { artifactId: 'reply', parts })
  const text = await get('?part=0')
  assert.deepEqual([text.headers['content-type'], text.text], ['text/plain; charset=utf-8', 'hello'])
  assert.deepEqual((await get('?part=1')).json, { a: [1] })
  const url = await get('?part=2')
  assert.deepEqual([url.status, url.json], [200, { url: 'https://elsewhere.test/x' }])
  assert.equal((await get('?part=3')).status, 404)
  for (const part of ['', '-1', '1.5', 'x', '99999999999']) assert.equal((await get(`?part=${part}`)).status, 400, part)
  assert.equal((await get('', 'nothing')).status, 404)
})

test('PL-17 a file name or media type of an agent cannot break out of its header', async (t) => {
  const filename = '../../../"; filename=evil.exe\r\nSet-Cookie: a=b'
  const get = await withReply(t, { text: '<script>', mediaType: 'text/html\r\nX-Evil: 1', filename })
  const { headers, status } = await get()
  assert.equal(status, 200)
  assert.equal(headers['content-type'], 'text/plain; charset=utf-8')
  assert.deepEqual([headers['x-evil'], headers['set-cookie']], [undefined, undefined])
  assert.match(String(headers['content-disposition']), /^attachment; filename="[^"]*"; filename\*=UTF-8''[\w%.~-]*$/)
})

test('PL-17 a large file has its exact length and its bytes, in both forms of base64', async (t) => {
  const bytes = Buffer.from(Array.from({ length: 500_001 }, (_, index) => index % 251))
  for (const raw of [bytes.toString('base64'), bytes.toString('base64url')]) {
    const answer = await (await withReply(t, { raw, mediaType: 'application/octet-stream' }))()
    assert.equal(answer.headers['content-length'], String(bytes.length))
  }
  const text = 'é'.repeat(300_000)
  const answer = await (await withReply(t, { text }))()
  assert.deepEqual([answer.headers['content-length'], answer.text === text], ['600000', true])
})

/** Requests an artifact with these parts, as a viewer. */
async function download(t: TestContext, parts: readonly Part[], more: Partial<Artifact> & { query?: string } = {}) {
  const { query = '', ...named } = more
  const artifact = { artifactId: 'a', parts, ...named } as Artifact
  const call = await openRoutes(t, { reception: recordPart<Reception>({ artifact }).part })
  return await call(`GET /tasks/t_1/artifacts/a${query}`, { role: 'viewer' })
}

/** A file is sent in slices of this many characters. */
const SLICE = 192 * 1024

test('PL-17 a large text arrives whole, also where a slice would end inside a character', async (t) => {
  for (const pair of ['\u{10000}', '\u{10ffff}']) {
    const texts = [`${'a'.repeat(SLICE - 1)}${pair}z`, `${'中'.repeat(SLICE)}${pair}z`, 'a'.repeat(2 * SLICE)]
    for (const text of texts) {
      const answer = await download(t, [{ text }])
      assert.ok(answer.text === text, `${answer.text.length} of ${text.length} characters`)
      assert.equal(answer.headers['content-length'], String(Buffer.byteLength(text)))
    }
  }
  assert.equal((await download(t, [{ text: '' }])).headers['content-length'], '0')
})

test('PL-17 a large file arrives whole, also where its base64 has line breaks', async (t) => {
  const text = 'abcde'.repeat(100_000)
  const raw = Buffer.from(text).toString('base64')
  const broken = raw.replaceAll(/(.{76})/g, '$1\r\n')
  for (const given of [raw, broken]) {
    const answer = await download(t, [{ raw: given }])
    assert.ok(answer.text === text)
    assert.equal(answer.headers['content-length'], '500000')
    assert.equal(answer.headers['content-type'], 'application/octet-stream')
  }
})

test('PL-17 each kind of part has its media type and its file name', async (t) => {
  const shown = async (part: Part, more: Partial<Artifact> = {}) => {
    const { headers, text } = await download(t, [part], more)
    const name = /filename="([^"]*)"/.exec(String(headers['content-disposition']))?.[1]
    return [headers['content-type'], name, text]
  }
  const plain = 'text/plain; charset=utf-8'
  const json = 'application/json'
  const url = 'https://elsewhere.test/x'
  assert.deepEqual(await shown({ text: 'x' }), [plain, 'artifact.txt', 'x'])
  assert.deepEqual(await shown({ text: 'x', mediaType: 'text/csv', filename: 'a.csv' }), ['text/csv', 'a.csv', 'x'])
  assert.deepEqual(await shown({ text: 'x', mediaType: 'text/css' }), [plain, 'artifact.css', 'x'])
  assert.deepEqual(await shown({ text: 'x' }, { name: 'report.md' }), [plain, 'report.md', 'x'])
  assert.deepEqual(await shown({ raw: 'eA==', filename: 'x.bin' }), ['application/octet-stream', 'x.bin', 'x'])
  assert.deepEqual(await shown({ data: { a: 1 } }), [json, 'artifact.json', '{"a":1}'])
  assert.deepEqual(await shown({ data: null, filename: 'd.json' }), [json, 'd.json', 'null'])
  const link = { url, filename: 'x.exe' }
  assert.deepEqual(await shown(link), [json, 'artifact.json', JSON.stringify(link)])
  assert.deepEqual(await shown(link, { name: 'link' }), [json, 'link', JSON.stringify(link)])
})

test('PL-17 the name of a download is plain ASCII, with the exact name beside it', async (t) => {
  const { headers } = await download(t, [{ text: 'x', filename: `a"b'(c)*!é.txt` }])
  const names = `filename="a_b'(c)_!_.txt"; filename*=UTF-8''a_b%27%28c%29_%21%C3%A9.txt`
  assert.equal(headers['content-disposition'], `attachment; ${names}`)
  assert.equal(headers['cache-control'], 'no-store')
})

test('PL-17 an artifact with several parts, or with none, is one JSON document; a part is chosen by its number', async (t) => {
  const parts = [{ text: 'x' }, { text: 'y' }]
  const document = await download(t, parts)
  assert.equal(document.headers['content-type'], 'application/json')
  assert.match(String(document.headers['content-disposition']), /filename="artifact\.json"/)
  assert.deepEqual(document.json, { artifactId: 'a', parts })
  assert.match(String((await download(t, parts, { name: 'log' })).headers['content-disposition']), /="log\.json"/)
  assert.deepEqual((await download(t, [])).json, { artifactId: 'a', parts: [] })
  assert.equal((await download(t, parts, { query: '?part=1' })).text, 'y')
  const beyond = await download(t, parts, { query: '?part=2' })
  assert.deepEqual([beyond.status, beyond.json.error.message], [404, 'the artifact has 2 parts, counted from 0'])
  const wrong = await download(t, parts, { query: '?part=x' })
  assert.deepEqual([wrong.status, wrong.json.error.message], [400, 'part must be the number of a part, from 0'])
})

test('PL-17 a missing artifact says whether the task exists, without reading the rest of the task', async (t) => {
  const task: Task = { id: 't_1', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' } }
  const refused = async (known: Task | undefined) => {
    const reception = recordPart<Reception>({ artifact: undefined, task: known })
    const call = await openRoutes(t, { reception: reception.part })
    const { status, json } = await call('GET /tasks/t_1/artifacts/a', { role: 'viewer' })
    assert.deepEqual(reception.take(), [
      ['artifact', 't_1', 'a', {}],
      ['task', 't_1', { historyLength: 0, artifacts: false }],
    ])
    return [status, json.error.message]
  }
  assert.deepEqual(await refused(task), [404, 'the task has no artifact a'])
  assert.deepEqual(await refused(undefined), [404, 'there is no task t_1'])
})

test('PL-17 a download ends when its last byte is sent, so that its connection serves the next request', async (t) => {
  const metrics = createMetrics()
  const artifact: Artifact = { artifactId: 'a', parts: [{ text: 'hello' }] }
  const { url } = await openDoor(t, { metrics, reception: recordPart<Reception>({ artifact }).part })
  const agent = new Agent({ keepAlive: true })
  t.after(() => agent.destroy())
  const headers = { authorization: `Bearer ${secretOf('viewer')}` }
  const outgoing = request(`${url}/tasks/t_1/artifacts/a`, { agent, headers }).end()
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
  await once(incoming.resume(), 'end')
  const served = () => metrics.read().get('molecule_http_requests_total')?.[0]?.value === 1
  await waitUntil(served, 'the request has ended on the platform, while its connection is open', 10_000)
})
