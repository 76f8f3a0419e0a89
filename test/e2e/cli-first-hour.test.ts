/** A new user's first hour in a real terminal: the printed commands, `init`, names, and what a typing error answers. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { BIN, cleanEnvironment, openTerminal, type RunCommandOptions, runCommand } from '../harness/command.ts'
import { type PlatformUnderTest, startPlatform } from '../harness/platform.ts'
import { temporaryDir } from '../harness/process-harness.ts'

const CLONE = dirname(BIN)

describe('the first hour', () => {
  let platform: PlatformUnderTest
  before(async () => {
    platform = await startPlatform()
  })
  after(() => platform.dispose())

  const molecule = (args: readonly string[], options: RunCommandOptions = {}) =>
    runCommand(args, { ...options, env: { MOLECULE_HOME: platform.dataDir, ...options.env } })
  const succeed = async (args: readonly string[], options: RunCommandOptions = {}) => {
    const { code, out, err } = await molecule(args, options)
    assert.equal(code, 0, `${args.join(' ')}: ${err}`)
    return out
  }
  /** Runs a printed line as a person pastes it, in this folder, with nothing else in the environment. */
  const paste = (line: string, cwd: string, path = process.env['PATH']) => {
    const env = { ...cleanEnvironment({ PATH: path ?? '' }) }
    const { status, stdout, stderr } = spawnSync('/bin/sh', ['-c', line], { cwd, env, encoding: 'utf8' })
    assert.equal(status, 0, `${line}: ${stderr}`)
    return stdout
  }

  test('CL-7 the commands that up prints work when they are pasted in the clone', () => {
    const [init = '', open = ''] = [...platform.output().matchAll(/^ {2}(MOLECULE_HOME=.* (?:init|open)) {3}/gm)].map(
      ([, line]) => line,
    )
    assert.match(init, /^MOLECULE_HOME=\S+ bin\/molecule init$/)
    assert.match(paste(`${init} --yes --runtime mock --name pasted`, CLONE), /^The workspace "pasted" is online\./)
    assert.match(paste(`${open} --print`, CLONE), /^http:/)
  })

  test('CL-7 init prints commands that work as printed: from the clone, from elsewhere, and where it is installed', async (t) => {
    const folder = temporaryDir(t)
    const chatLine = (out: string) => /^ {2}(.* chat \S+)$/m.exec(out)?.[1] ?? assert.fail(out)
    const inspectLine = (out: string) => /^ {2}(.* workspace inspect .*)$/m.exec(out)?.[1] ?? assert.fail(out)
    const fromClone = await succeed(['init', '--runtime', 'mock', '--name', 'in clone'])
    assert.match(fromClone, /^ {2}MOLECULE_HOME=\S+ bin\/molecule chat 'in clone'$/m)
    assert.match(paste(inspectLine(fromClone), CLONE), /^name +in clone$/m)
    const elsewhere = await succeed(['init', '--runtime', 'mock', '--name', 'elsewhere'], { cwd: folder })
    assert.match(chatLine(elsewhere), /\/bin\/molecule chat elsewhere$/)
    assert.match(paste(inspectLine(elsewhere), folder), /^name +elsewhere$/m)
    mkdirSync(join(folder, 'programs'))
    symlinkSync(join(BIN, 'molecule'), join(folder, 'programs/molecule'))
    const PATH = `${folder}/programs:${process.env['PATH']}`
    const installed = await succeed(['init', '--runtime', 'mock', '--name', 'installed'], {
      cwd: folder,
      env: { PATH },
    })
    assert.match(chatLine(installed), /^MOLECULE_HOME=\S+ molecule chat installed$/)
    assert.match(paste(inspectLine(installed), folder, PATH), /^name +installed$/m)
  })

  test('CL-7 a command in an error works as printed, with MOLECULE_HOME and --api-url', async () => {
    const { err } = await molecule(['init', '--name', 'pasted', '--api-url', platform.url])
    const line = /talk to it: "(.*)"\n$/.exec(err)?.[1] ?? assert.fail(err)
    assert.equal(line, `MOLECULE_HOME=${platform.dataDir} bin/molecule --api-url ${platform.url} chat pasted`)
    assert.equal(paste(`echo hello | ${line}`, CLONE), 'echo: hello\n')
  })

  test('CL-1 PL-11 init asks for agent, folder and name at a terminal; Enter takes free defaults', async (t) => {
    const folder = temporaryDir(t)
    const env = { MOLECULE_HOME: platform.dataDir, PWD: folder }
    const first = openTerminal(t, ['init', '--runtime', 'exec'], env)
    await first.waitForText(/Which command\?/)
    first.type('pwd\r')
    await first.waitForText(/In which folder does it work\?/)
    first.type('projects/one\r')
    await first.waitForText(/There is no folder .*projects\/one\. Create it\?/)
    first.type('y')
    await first.waitForText(/What is it called\?/)
    first.type('\r')
    assert.equal(await first.ended(), 0, first.shown())
    assert.match(first.shown(), /The workspace "one" is online\. It works in .*projects\/one\./)
    assert.ok(existsSync(join(folder, 'projects/one')))
    assert.equal((await succeed(['agent', 'send', 'one', 'x'])).trim(), join(folder, 'projects/one'))

    const second = openTerminal(t, ['init', '--runtime', 'exec', '--set', 'cmd=cat'], env)
    await second.waitForText(/In which folder/)
    second.type('projects/one\r')
    await second.waitForText(/What is it called\?/)
    await second.waitForText(/ne-2/)
    second.type('one\r')
    await second.waitForText(/There is a workspace called "one" already\..*What is it called\?/s)
    second.type('\r')
    assert.equal(await second.ended(), 0, second.shown())
    assert.match(second.shown(), /The workspace "one-2" is online\./)
  })

  test('CL-1 PL-11 the folder may be left out, a file is refused, and Ctrl-C creates nothing', async (t) => {
    const folder = temporaryDir(t)
    writeFileSync(join(folder, 'notes.txt'), '')
    const typing = openTerminal(t, ['init', '--runtime', 'mock'], { MOLECULE_HOME: platform.dataDir, PWD: folder })
    await typing.waitForText(/In which folder/)
    typing.type('notes.txt\r')
    await typing.waitForText(/notes\.txt is not a folder\./)
    typing.type('\u0015\r')
    await typing.waitForText(/What is it called\?/)
    typing.type('\u0003')
    assert.equal(await typing.ended(), 1)
    assert.match(typing.shown(), /nothing was created/)
  })

  test('CL-7 init never makes a second workspace of a name, and takes relative folders', async (t) => {
    const folder = temporaryDir(t)
    mkdirSync(join(folder, 'sub'))
    const made = JSON.parse(await succeed(['init', '--runtime', 'mock', '--dir', 'sub', '-o', 'json'], { cwd: folder }))
    assert.deepEqual([made.name, made.working_dir], ['sub', join(folder, 'sub')])
    const again = JSON.parse(
      await succeed(['init', '--yes', '--runtime', 'mock', '--dir', 'sub', '-o', 'json'], { cwd: folder }),
    )
    assert.equal(again.name, 'sub-2')
    const { code, err } = await molecule(['init', '--runtime', 'mock', '--name', 'sub'])
    assert.equal(code, 1)
    assert.match(
      err,
      /^error: there is a workspace called "sub" already; choose another --name, or talk to it: ".* chat sub"\n$/,
    )
    const missing = await molecule(['init', '--runtime', 'mock', '--dir', 'none'], { cwd: folder })
    assert.match(missing.err, /there is no folder .*\/none/)
    const create = await succeed(['workspace', 'create', 'rel', '--runtime', 'mock', '--dir', 'sub', '-o', 'json'], {
      cwd: folder,
    })
    assert.equal(JSON.parse(create).working_dir, join(folder, 'sub'))
  })

  test('CL-7 AG-15 create warns of an option that the backend ignores and of a name that is taken', async () => {
    const args = ['workspace', 'create', 'warned', '--runtime', 'exec', '--set', 'cmd=cat', '--set', 'timeuot=5s']
    const { code, err } = await molecule(args)
    assert.equal(code, 0)
    assert.equal(err, 'warning: the backend exec has no option "timeuot" and ignores it; did you mean "timeout"?\n')
    const { body, status } = await platform.request('POST', '/workspaces', {
      name: 'warned',
      runtime: 'exec',
      runtime_config: { cmd: 'cat', max_attempts: 2, zzz: '1' },
    })
    assert.equal(status, 201)
    assert.match(body.warnings[0], /^the backend exec has no option "zzz" and ignores it; its options are .*cmd/)
    assert.match(
      body.warnings[1],
      /^another workspace is called "warned" \(ws_\w+\); commands and URLs then need the id$/,
    )
    // An option of another backend is no typing error.
    const foreign = await platform.request('POST', '/workspaces?dry_run=true', {
      name: 'foreign',
      runtime: 'exec',
      runtime_config: { cmd: 'cat', max_turns: 3 },
    })
    assert.match(foreign.body.warnings[0], /has no option "max_turns" and ignores it; its options are /)
    const short = JSON.parse(await succeed(['workspace', 'create', 'short', '--runtime', 'claude', '-o', 'json']))
    assert.equal(short.runtime, 'claude-code')
    const quiet = await platform.request('POST', '/workspaces', { name: 'quiet', runtime: 'mock' })
    assert.equal(quiet.body.warnings, undefined)
  })

  test('CL-7 commands take names; a wrong name is answered with the nearest, an ambiguous one with the ids', async () => {
    await succeed(['workspace', 'create', 'parrot', '--runtime', 'mock'])
    assert.equal(await succeed(['agent', 'send', 'parrot', 'hi']), 'echo: hi\n')
    const wrong = await molecule(['agent', 'send', 'Parot', 'hi'])
    assert.equal(wrong.err, 'error: there is no workspace called "Parot"; did you mean "parrot"?\n')
    await succeed(['workspace', 'create', 'parrot', '--runtime', 'mock', '--allow-duplicate'])
    const { err } = await molecule(['workspace', 'inspect', 'parrot'])
    assert.match(err, /^error: 2 workspaces are called "parrot"; use an id: ws_\w+, ws_\w+\n$/)
  })
})
