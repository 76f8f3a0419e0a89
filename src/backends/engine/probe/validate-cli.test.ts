import assert from 'node:assert/strict'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { present } from '../../../../test/harness/present.ts'
import { createProcessHarness, PLAIN_ENVIRONMENT } from '../../../../test/harness/process-harness.ts'
import { validateCli } from './validate-cli.ts'

const never = new AbortController().signal

function setUp(t: TestContext) {
  const { processes, dir } = createProcessHarness(t)
  const program = (name: string, body: string, mode = 0o755) => {
    const path = join(dir, name)
    writeFileSync(path, `#!/bin/sh\n${body}\n`)
    chmodSync(path, mode)
    return path
  }
  const env = { PATH: `${dir}:${PLAIN_ENVIRONMENT.PATH}` }
  const validate = (bin: string) =>
    validateCli({ processes, env, backend: 'some', bin, install: 'install it with `npm i some`' }, never)
  return { program, validate }
}

test('BK-8 a program is found on PATH or by its path, with its version', async (t) => {
  const { program, validate } = setUp(t)
  const path = program('agent', 'echo "agent version 1.2.3-beta.4 (x)"')
  const expected = { ok: true, version: '1.2.3-beta.4', note: path }
  assert.deepEqual(await validate('agent'), expected)
  assert.deepEqual(await validate(path), expected)
  program('mute', 'true')
  assert.deepEqual(present(await validate('mute')), { ok: true, note: path.replace(/agent$/, 'mute') })
})

test('BK-8 a missing, a non-executable and a broken program each have a problem and a remedy', async (t) => {
  const { program, validate } = setUp(t)
  program('plain', 'true', 0o644)
  const broken = program('broken', 'echo its engine is missing >&2; exit 1')
  const [missing, plain, failing] = await Promise.all([validate('nowhere'), validate('plain'), validate('broken')])
  assert.deepEqual(missing, {
    ok: false,
    problem: 'backend "some": nowhere is not found on PATH',
    remedy: 'install it with `npm i some`, or set option bin to its path',
  })
  const elsewhere = await validate('/nowhere/agent')
  assert.equal(!elsewhere.ok && elsewhere.problem, 'backend "some": there is no program /nowhere/agent')
  assert.ok(!plain.ok && /plain is not executable/.test(plain.problem) && /chmod \+x/.test(plain.remedy))
  const problem = `backend "some": \`${broken} --version\` failed: exit code 1: its engine is missing`
  assert.ok(!failing.ok)
  assert.equal(failing.problem, problem)
})
