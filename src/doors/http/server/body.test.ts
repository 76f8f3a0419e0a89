import assert from 'node:assert/strict'
import { test } from 'node:test'
import { secretOf, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openDoor } from '../../../../test/harness/open-door.ts'
import { JSON_DEPTH_MAX as deepest } from '../../../protocol/schemas.ts'
import { parseJson } from './body.ts'

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
