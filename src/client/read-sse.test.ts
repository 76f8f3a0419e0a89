import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MoleculeError } from '../errors.ts'
import { readSse } from './read-sse.ts'

const MIB = 1024 * 1024

async function* cut(text: string, size: number): AsyncIterable<Uint8Array> {
  const bytes = Buffer.from(text)
  for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size)
}

async function read(chunks: AsyncIterable<Uint8Array>): Promise<string[]> {
  const events: string[] = []
  for await (const event of readSse(chunks)) events.push(event)
  return events
}

test('events arrive whole and in order, wherever the chunks are cut; unknown fields and comments are ignored', async () => {
  const text = ': hello\n\ndata: {"a":"ü€😀"}\n\nid: 7\nweather: fine\ndata: two\ndata: lines\n\ndata: cut off'
  for (const size of [1, 2, 3, 1000]) {
    assert.deepEqual(await read(cut(text, size)), ['{"a":"ü€😀"}', 'two\nlines'])
  }
})

test('an event of 10 MiB that does not end is an error, and one below the limit is not', async () => {
  const below = `data: ${'x'.repeat(9 * MIB)}\n\n`
  assert.equal((await read(cut(below, MIB)))[0]?.length, 9 * MIB)
  const isTooLarge = (error: unknown) => error instanceof MoleculeError && error.code === 'too_large'
  await assert.rejects(read(cut(`data: ${'x'.repeat(11 * MIB)}`, MIB)), isTooLarge)
})
