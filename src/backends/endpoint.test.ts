import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDir } from '../../test/harness/process-harness.ts'
import { readEndpoint } from './endpoint.ts'
import { createOptions } from './options.ts'

const URL_GIVEN = 'https://agent.test/'
const read = (values: Record<string, string>, environment: Record<string, string> = {}) =>
  readEndpoint(createOptions({ url: URL_GIVEN, ...values }), environment)

test('AG-17 a token comes from a file or a variable, is read at each call, and is sent with other headers', async (t) => {
  const file = join(temporaryDir(t), 'token')
  const { headers } = read({ token_file: file, headers: '{"X-Team":"blue"}' })
  await assert.rejects(headers(), { code: 'bad_config', message: /"token_file" cannot be read \(ENOENT\)/ })
  writeFileSync(file, 'one\n')
  assert.deepEqual(await headers(), { 'X-Team': 'blue', Authorization: 'Bearer one' })
  writeFileSync(file, 'two')
  assert.deepEqual(await headers(), { 'X-Team': 'blue', Authorization: 'Bearer two' })
  assert.deepEqual(await read({ token_env: 'T' }, { T: 'three' }).headers(), { Authorization: 'Bearer three' })
  assert.deepEqual(await read({}).headers(), {})
})

test('AG-17 invalid options are refused without quoting a possible secret', async (t) => {
  const file = join(temporaryDir(t), 'token')
  writeFileSync(file, 'se cret')
  await assert.rejects(read({ token_file: file }).headers(), /contains no valid token/)
  await assert.rejects(read({ token_env: 'T' }).headers(), /the variable T of "token_env" contains no valid token/)
  const refused: [Record<string, string>, RegExp][] = [
    [{ url: '' }, /"url" is required/],
    [{ url: 'ftp://secret.test/' }, /"url" must be an http/],
    [{ url: 'https://ada:secret@agent.test/' }, /"url" must be an http/],
    [{ token_file: 'a', token_env: 'B' }, /cannot both be set/],
    [{ headers: 'secret' }, /"headers" must be a JSON object/],
    [{ headers: '{"X":1}' }, /"headers" must be a JSON object/],
    [{ headers: '{"X":"secret\\nY: z"}' }, /"headers" must be a JSON object/],
    [{ timeout: 'soon' }, /"soon" is not a positive duration/],
    [{ timeout: '0s' }, /not a positive duration/],
  ]
  for (const [values, problem] of refused) {
    assert.throws(
      () => read(values),
      (error: Error) => problem.test(error.message) && !error.message.includes('secret'),
      JSON.stringify(values),
    )
  }
})

test('the stall timeout is five minutes by default, and ten minutes for none', () => {
  assert.equal(read({}).stallMs, 300_000)
  assert.equal(read({ timeout: '30s' }).stallMs, 30_000)
  assert.equal(read({ timeout: 'none' }).stallMs, 600_000)
})
