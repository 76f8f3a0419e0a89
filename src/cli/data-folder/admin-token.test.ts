import assert from 'node:assert/strict'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import test from 'node:test'
import { temporaryDir } from '../../../test/harness/process-harness.ts'
import { createLog, silentLog } from '../../log.ts'
import { adminTokenPath, ensureAdminToken, readAdminToken } from './admin-token.ts'

const modeOf = (path: string): number => statSync(path).mode & 0o777

test('PL-1 the first start writes a token of 32 bytes to a file for its owner only; later starts keep it', (t) => {
  const dir = temporaryDir(t)
  const first = ensureAdminToken(dir, undefined, silentLog)
  assert.match(first.token, /^mol_[\w-]{43}$/)
  assert.equal(readFileSync(first.path, 'utf8').trim(), first.token)
  assert.equal(modeOf(first.path), 0o600)
  assert.deepEqual(ensureAdminToken(dir, '', silentLog), first)
})

test('MOLECULE_ADMIN_TOKEN sets the token and replaces the one in the file', (t) => {
  const dir = temporaryDir(t)
  ensureAdminToken(dir, 'first-preset', silentLog)
  assert.equal(readAdminToken(dir), 'first-preset')
  const lines: string[] = []
  ensureAdminToken(dir, 'second-preset', createLog('info', { write: (line) => lines.push(line) }))
  assert.equal(readAdminToken(dir), 'second-preset')
  assert.equal(modeOf(adminTokenPath(dir)), 0o600)
  assert.match(lines.join(''), /replaces the admin token/)
  assert.doesNotMatch(lines.join(''), /second-preset/)
})

test('PL-9 a short admin token causes a warning that does not show it', (t) => {
  const warningsFor = (token: string | undefined) => {
    const lines: string[] = []
    ensureAdminToken(temporaryDir(t), token, createLog('info', { write: (line) => lines.push(line) }))
    return lines.join('')
  }
  assert.match(warningsFor('hunter2-hunter2'), /can be guessed/)
  assert.doesNotMatch(warningsFor('hunter2-hunter2'), /hunter2/)
  assert.equal(warningsFor('x'.repeat(20)), '')
  assert.equal(warningsFor(undefined), '')
})

test('an empty file gets a new token; a token that no header can carry is refused', (t) => {
  const dir = temporaryDir(t)
  writeFileSync(adminTokenPath(dir), '\n', { mode: 0o600 })
  assert.notEqual(ensureAdminToken(dir, undefined, silentLog).token, '')
  for (const token of ['two words', 'ümlaut', 'x'.repeat(513)]) {
    assert.throws(() => ensureAdminToken(dir, token, silentLog), { code: 'bad_config' })
  }
})
