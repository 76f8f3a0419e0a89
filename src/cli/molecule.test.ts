import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import test from 'node:test'
import { recordingTerminal } from '../../test/fakes/terminal.ts'
import { temporaryDir } from '../../test/harness/process-harness.ts'
import { main as a2a } from './a2a.ts'
import { main as molecule } from './molecule.ts'
import { COMMANDS } from './tree.ts'

test('--version prints the version of the package, --help lists the commands; both exit with 0', async () => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  for (const [main, word] of [
    [molecule, 'up'],
    [a2a, 'delegate'],
  ] as const) {
    const terminal = recordingTerminal()
    assert.equal(await main(['--version'], terminal), 0)
    assert.equal(terminal.output(), `${version}\n`)
    assert.equal(await main(['--help'], terminal), 0)
    assert.ok(terminal.output().includes(word))
  }
})

test('CL-2 the first page of help lists every command and loads no parser', async () => {
  const script = `
    const { main } = await import(${JSON.stringify(new URL('./molecule.ts', import.meta.url).href)})
    const code = await main(['--help'])
    // Only the parser imports child_process.
    process.exitCode = process.moduleLoadList.includes('NativeModule child_process') ? 9 : code`
  const { status, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
  assert.equal(status, 0)
  for (const { name, hidden } of COMMANDS) assert.equal(new RegExp(`^ {2}${name} `, 'm').test(stdout), hidden !== true)
  assert.ok(stdout.split('\n').every((line) => line.length <= 80))
})

test('bad usage exits with 2 and prints an error', async () => {
  for (const [main, argv] of [
    [molecule, ['dance']],
    [molecule, ['up', '--prot', '80']],
    [molecule, ['up', 'extra']],
    [a2a, ['delegate', 'only-one']],
    [a2a, []],
  ] as const) {
    const terminal = recordingTerminal()
    assert.equal(await main(argv, terminal), 2, argv.join(' '))
    assert.notEqual(terminal.errors(), '')
  }
})

test('CL-2 a wrong value exits with 2 and one sentence; -v shows the stacks', async (t) => {
  const argv = ['up', '--data-dir', temporaryDir(t), '--port', 'eighty']
  const terminal = recordingTerminal()
  assert.equal(await molecule(argv, terminal), 2)
  assert.match(terminal.errors(), /^error: setting "port" from --port cannot be "eighty": [^\n]*\n$/)
  const verbose = recordingTerminal()
  assert.equal(await molecule(['-v', ...argv], verbose), 2)
  assert.match(verbose.errors(), /\n {4}at .*\ncaused by: /)
})

test('PL-13 up on a taken port names the holder and the flag, and releases the data folder', async (t) => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const { port } = server.address() as { port: number }
  const pid = process.platform === 'linux' ? ` by process ${process.pid} ` : ''
  const dataDir = temporaryDir(t)
  for (const flags of [['--port'], ['--port'], ['--port', '0', '--grpc-port']]) {
    const terminal = recordingTerminal()
    assert.equal(await molecule(['up', '--data-dir', dataDir, ...flags, String(port)], terminal), 1)
    assert.ok(terminal.errors().includes(`port ${port} on 127.0.0.1 is taken${pid}`), terminal.errors())
    assert.ok(terminal.errors().includes(`molecule up ${flags.at(-1)} ${port + 1}`), terminal.errors())
  }
})
