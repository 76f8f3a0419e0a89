import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { secretOf } from '../../../../test/fakes/platform/fake-platform.ts'
import { openDoor, sendParams } from '../../../../test/harness/open-door.ts'
import type { Part } from '../../../protocol/a2a.ts'

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
