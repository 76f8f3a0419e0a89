import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { fakeRequest } from '../../../../test/fakes/http-exchange.ts'
import { secretOf, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openDoor } from '../../../../test/harness/open-door.ts'
import { JSON_DEPTH_MAX as deepest } from '../../../protocol/schemas.ts'
import { parseJson, readBody, requireSimple } from './body.ts'

const MORE_VALUES = /has more than (\d+) values/
/** A body of that many values: the object, its member, and the items of the array. */
const bodyOf = (values: number, more: object = {}) =>
  JSON.stringify({ list: Array.from({ length: values - 2 - Object.keys(more).length }, () => 0), ...more })

test('PL-9 a body has at most 2,000 values, over A2A 10,000, and from a bridge 60,000', async (t) => {
  const { sendRequest } = await openDoor(t)
  const limits: [path: string, most: number][] = [
    ['/workspaces', 2000],
    [`/workspaces/${WORKSPACE_ID}/a2a`, 10_000],
    [`/workspaces/${WORKSPACE_ID}/a2a/message:send`, 10_000],
    [`/workspaces/${WORKSPACE_ID}/inbox/append`, 60_000],
  ]
  for (const [path, most] of limits) {
    const answerTo = async (values: number) =>
      (await sendRequest(path, { method: 'POST', token: secretOf('admin'), body: bodyOf(values) })).text
    assert.doesNotMatch(await answerTo(most), MORE_VALUES, path)
    assert.equal(MORE_VALUES.exec(await answerTo(most + 1))?.[1], String(most), path)
  }
})

test('PL-9 values are counted outside of texts, and the depth of a body is limited', async () => {
  const parse = (body: string) => parseJson(Buffer.from(body))
  const text = `,[{${'"\\,'.repeat(3000)}`
  assert.deepEqual(await parse(JSON.stringify({ text })), { text })
  const objects = (count: number) => JSON.stringify(Array.from({ length: count }, () => ({})))
  assert.equal(((await parse(objects(999))) as object[]).length, 999)
  await assert.rejects(parse(objects(1000)), MORE_VALUES)
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
  assert.ok(await parse(nested(deepest)))
  await assert.rejects(parse(nested(deepest + 1)), /nested deeper than/)
  assert.ok(await parse(`[${Array.from({ length: 3 }, () => nested(deepest - 1)).join(',')}]`), 'side by side')
  await assert.rejects(parse('{"a":"'), { code: 'invalid_request', message: 'the body is not valid JSON' })
})

const uncounted = () => ({ add: () => undefined, close: () => undefined })
const EVENTS = ['data', 'end', 'error', 'close'] as const

/** How a read stands once everything that has happened is handled. */
async function stateOf(read: Promise<Buffer>): Promise<unknown> {
  const waits = nextTurn()
    .then(nextTurn)
    .then(() => 'waits')
  return Promise.race([read.then(String, (error: unknown) => error), waits])
}

test('PL-9 a body arrives whole in any number of chunks, and reading it leaves no listener', async () => {
  for (const chunks of [[], ['abc'], ['a', 'b', 'c'], ['ab', 'c']]) {
    const request = fakeRequest()
    const before = EVENTS.map((event) => request.listenerCount(event))
    const read = readBody(request, 3, uncounted)
    for (const chunk of chunks) request.write(chunk)
    assert.equal(await stateOf(read), 'waits')
    request.end()
    await once(request, 'end')
    assert.equal(await stateOf(read), chunks.join(''))
    assert.deepEqual(
      EVENTS.map((event) => request.listenerCount(event)),
      before,
    )
  }
})

test('PL-9 a body of unknown length is refused at the first byte over its limit, and no listener stays', async () => {
  const request = fakeRequest()
  const before = EVENTS.map((event) => request.listenerCount(event))
  const read = readBody(request, 10, uncounted)
  request.write('123456')
  request.write('7890')
  assert.equal(await stateOf(read), 'waits')
  request.write('1')
  await assert.rejects(read, {
    code: 'too_large',
    message: 'the body is larger than 10 bytes',
    details: { limitBytes: 10 },
  })
  assert.deepEqual(
    EVENTS.map((event) => request.listenerCount(event)),
    before,
  )
})

test('PL-9 a body that announces more than its limit is refused before it is read; one at the limit is read', async () => {
  const over = fakeRequest({ headers: { 'content-length': '11' } })
  await assert.rejects(readBody(over, 10, uncounted), { code: 'too_large' })
  assert.equal(over.readableFlowing, null)
  const within = fakeRequest({ headers: { 'content-length': '10' } })
  const read = readBody(within, 10, uncounted)
  within.end('1234567890')
  await once(within, 'end')
  assert.equal(await stateOf(read), '1234567890')
})

test('a client that disconnects before, during or with an error ends the read', async () => {
  const gone = fakeRequest()
  gone.destroy()
  await once(gone, 'close')
  assert.match(
    String(await stateOf(readBody(gone, 10, uncounted))),
    /the client disconnected before its request was complete/,
  )
  const cause = new Error('reset')
  for (const reason of [undefined, cause]) {
    const request = fakeRequest()
    const before = EVENTS.map((event) => request.listenerCount(event))
    const read = readBody(request, 10, uncounted)
    request.write('123')
    await nextTurn()
    request.destroy(reason)
    await new Promise((resolve) => request.once('close', resolve))
    const state = (await stateOf(read)) as { readonly code?: string; readonly cause?: unknown }
    assert.deepEqual([state.code, state.cause], ['canceled', reason])
    assert.deepEqual(
      EVENTS.map((event) => request.listenerCount(event)),
      before,
    )
  }
})

test('PL-23 a body up to 256 KiB is parsed at once, and before a larger one is parsed other callers run', async () => {
  for (const [bytes, othersRan] of [
    [256 * 1024, false],
    [256 * 1024 + 1, true],
  ] as const) {
    let ran = false
    setImmediate(() => {
      ran = true
    })
    const text = 'x'.repeat(bytes - 2)
    assert.equal(await parseJson(Buffer.from(`"${text}"`)), text)
    assert.equal(ran, othersRan, String(bytes))
  }
})

test('PL-9 a body that is not UTF-8 or not JSON is refused with the reason', async () => {
  await assert.rejects(parseJson(Buffer.from([0x22, 0xff, 0x22])), {
    code: 'invalid_request',
    message: 'the body is not valid UTF-8',
  })
  await assert.rejects(parseJson(Buffer.from('{')), { code: 'invalid_request', message: 'the body is not valid JSON' })
  assert.deepEqual(await parseJson(Buffer.from('{"a":[1,"b"]}')), { a: [1, 'b'] })
})

test('PL-9 without a limit of its own a body has at most 2,000 values: members, items and the body itself', async () => {
  const list = (items: number) => JSON.stringify(Array.from({ length: items }, () => 7))
  const object = (members: number) =>
    JSON.stringify(Object.fromEntries(Array.from({ length: members }, (_, index) => [`k${index}`, 'v,v'])))
  for (const make of [list, object]) {
    assert.ok(await parseJson(Buffer.from(make(1999))))
    await assert.rejects(parseJson(Buffer.from(make(2000))), {
      message: 'the body has more than 2000 values; send it as one text',
    })
  }
  const refused = (body: string, valuesMax: number) => {
    try {
      requireSimple(Buffer.from(body), valuesMax)
      return false
    } catch {
      return true
    }
  }
  assert.deepEqual([refused('7', 1), refused('7', 0)], [false, true])
  assert.deepEqual([refused('[]', 2), refused('[]', 1)], [false, true])
  assert.deepEqual([refused('{"a":{"b":[]}}', 4), refused('{"a":{"b":[]}}', 3)], [false, true])
})

test('PL-9 commas and brackets inside texts are no values, also after escaped quotes and backslashes', () => {
  const texts = [',,,', '[[[', '{{{', 'a"b,c', '\\', '\\",,', '"', '",', 'a\\"[', '""""[,', ']]]']
  for (const text of texts) {
    const body = JSON.stringify([text, text])
    requireSimple(Buffer.from(body), 3)
    assert.throws(() => requireSimple(Buffer.from(body), 2), { code: 'invalid_request' }, body)
    requireSimple(Buffer.from(JSON.stringify(text)), 1)
  }
  for (const open of ['"a', '"a\\"', '"a\\', '"\\",,', '"', '["a,,,']) requireSimple(Buffer.from(open), 3)
})

test('PL-9 the depth of a body counts open brackets of both kinds, and closed ones no more', () => {
  const nested = (depth: number, [open, close]: readonly [string, string]) => open.repeat(depth) + close.repeat(depth)
  const most = 64
  for (const pair of [
    ['[', ']'],
    ['{"a":', '}'],
  ] as const) {
    requireSimple(Buffer.from(nested(most, pair)))
    assert.throws(() => requireSimple(Buffer.from(nested(most + 1, pair))), {
      code: 'invalid_request',
      message: `the body is nested deeper than ${most} levels`,
    })
    const side = nested(most - 1, pair)
    requireSimple(Buffer.from(`[${side},${side}]`))
  }
})
