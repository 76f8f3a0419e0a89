import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import { temporaryDir } from '../../../test/harness/process-harness.ts'
import { ownCommand, shellQuoted, withOwnCommand } from './own-command.ts'

const BIN = join(import.meta.dirname, '../../../bin')

test('CL-7 the command names the data folder only where it is not the default one', () => {
  const home = join(homedir(), '.molecule')
  const PATH = BIN
  assert.equal(ownCommand({ PATH }), 'molecule')
  assert.equal(ownCommand({ PATH, MOLECULE_HOME: home }), 'molecule')
  assert.equal(ownCommand({ PATH, MOLECULE_HOME: '/my data' }), "MOLECULE_HOME='/my data' molecule")
  assert.equal(ownCommand({ PATH }, { dataDir: '/data' }), 'MOLECULE_HOME=/data molecule')
  assert.equal(ownCommand({ PATH, MOLECULE_HOME: '/data' }, { dataDir: home }), `MOLECULE_HOME=${home} molecule`)
  assert.equal(ownCommand({ PATH }, { apiUrl: 'http://x:1' }), 'molecule --api-url http://x:1')
})

test('CL-7 only a quoted command in a sentence is replaced', () => {
  const text = 'start it with "molecule up"; the folder molecule up there, "molecule" and "molecules up" stay'
  assert.equal(withOwnCommand(text, 'bin/molecule'), text.replace('"molecule up"', '"bin/molecule up"'))
})

test('CL-7 the command that starts a platform here gets no URL of another one', () => {
  const text = 'start it with "molecule up", or see "molecule status"'
  const shown = withOwnCommand(text, 'M=/x bin/molecule --api-url http://x:1')
  assert.equal(shown, 'start it with "M=/x bin/molecule up", or see "M=/x bin/molecule --api-url http://x:1 status"')
})

test('CL-7 a quoted word reaches a command of the shell unchanged', () => {
  for (const word of ['plain', 'two words', "it's", '~ana', '$HOME', '*', 'a;b', '日本', '`x`', '"q"']) {
    const { stdout } = spawnSync('/bin/sh', ['-c', `printf %s ${shellQuoted(word)}`], { encoding: 'utf8' })
    assert.equal(stdout, word)
  }
})

test('CL-2 a command works in a folder that was removed', (t) => {
  const folder = join(temporaryDir(t), 'gone')
  mkdirSync(folder)
  const line = `cd '${folder}' && rmdir '${folder}' && exec '${BIN}/molecule' config get output`
  const env = { PATH: process.env['PATH'], MOLECULE_HOME: '/nowhere' }
  const { status, stdout, stderr } = spawnSync('/bin/sh', ['-c', line], { env, encoding: 'utf8' })
  assert.deepEqual([status, stdout], [0, 'table\n'], stderr)
})
