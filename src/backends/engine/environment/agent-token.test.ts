import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDir } from '../../../../test/harness/process-harness.ts'
import { type AgentTokenSource, readTokenVariables } from './agent-token.ts'

const AUTH: AgentTokenSource = { variable: 'TOKEN', from: ['TOKEN', 'OTHER_TOKEN'], instead: ['API_KEY'] }

test('RT-9 the token comes from a variable, else from the file, in the variable of the program', async (t) => {
  const dir = temporaryDir(t)
  const file = join(dir, '.auth-token')
  writeFileSync(file, ' from-file \n')
  assert.deepEqual(await readTokenVariables(AUTH, { OTHER_TOKEN: 'b', API_KEY: 'k' }, file), { TOKEN: 'b' })
  assert.deepEqual(await readTokenVariables(AUTH, { TOKEN: 'a', OTHER_TOKEN: 'b' }, file), { TOKEN: 'a' })
  // An empty variable counts as not set.
  assert.deepEqual(await readTokenVariables(AUTH, { TOKEN: '' }, file), { TOKEN: 'from-file' })
  assert.deepEqual(await readTokenVariables(AUTH, { API_KEY: 'k' }, file), {})
  assert.deepEqual(await readTokenVariables(AUTH, {}, ''), {})
  assert.deepEqual(await readTokenVariables(AUTH, {}, join(dir, 'none')), {})
})

test('RT-9 a file that cannot be read is an error', async (t) => {
  const dir = join(temporaryDir(t), 'folder')
  mkdirSync(dir)
  await assert.rejects(readTokenVariables(AUTH, {}, dir), {
    code: 'bad_config',
    message: `the token file ${dir} cannot be read`,
  })
})
