import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shellFor, validateShell } from './shell.ts'

test('EX-1 the line goes unchanged to /bin/sh -c, and on Windows to cmd.exe /c', () => {
  assert.deepEqual(shellFor('linux', {}).command('a "b" | c'), ['/bin/sh', '-c', 'a "b" | c'])
  const windows = shellFor('win32', { ComSpec: 'C:\\Windows\\cmd.exe' })
  assert.deepEqual(windows.command('a "b"'), ['C:\\Windows\\cmd.exe', '/d', '/s', '/c', '"a "b""'])
  assert.equal(shellFor('win32', {}).path, 'cmd.exe')
})

test('a missing shell is a problem with a remedy', async () => {
  assert.deepEqual(await validateShell(shellFor('linux', {})), { ok: true, note: 'commands are run by /bin/sh' })
  const missing = await validateShell({ path: '/nowhere/sh', command: (line) => [line] })
  assert.ok(!missing.ok)
  assert.match(missing.problem, /\/nowhere\/sh is missing/)
  assert.match(missing.remedy, /install it/)
})
