import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, readdir, readFile, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { openTestWorkspaces } from '../../test/harness/stores/workspaces.ts'
import { MoleculeError } from '../errors.ts'
import { createWorkspaceFiles, FILE_BYTES_MAX, FILES_MAX } from './workspace-files.ts'

const code =
  (expected: string, message: RegExp = /./) =>
  (error: unknown) =>
    error instanceof MoleculeError && error.code === expected && message.test(error.message)

describe('files of a workspace', () => {
  const { folder, store, homes, configs, workspaces } = openTestWorkspaces({ after })
  const files = createWorkspaceFiles({ store, homes, configs })
  const make = async (runtimeConfig: Record<string, string> = {}) => {
    const workspace = await workspaces.create({ name: 'files', runtimeConfig })
    const { id } = workspace
    return { workspace, id, home: homes.path(id), get: () => workspaces.get(id) }
  }

  test('RE-4 a file and a folder of one name, written at the same moment: one is refused with the reason', async () => {
    const { id } = await make()
    for (let round = 0; round < 50; round++) {
      const names = [`a${round}`, `a${round}/b`, `a${round}/b/c`]
      const results = await Promise.allSettled(names.map((name) => files.write(id, name, Buffer.from('x'))))
      for (const result of results)
        if (result.status === 'rejected') assert.ok(code('invalid_request')(result.reason), String(result.reason))
    }
  })

  test('PL-17 a file is written with mode 0600, listed, read back unchanged, and removed with its empty folders', async () => {
    const { id, home } = await make()
    const content = Buffer.from([0, 255, 13, 10])
    assert.equal(await files.write(id, 'notes/deep/a b.bin', content), true)
    assert.equal(await files.write(id, 'notes/deep/a b.bin', content), false)
    assert.equal((await stat(join(home, 'notes/deep/a b.bin'))).mode & 0o777, 0o600)
    assert.deepEqual(await files.read(id, 'notes/deep/a b.bin'), content)
    await writeFile(join(home, 'work', 'mine'), 'x')
    const listed = (await files.list(id)).map(({ path, size }) => [path, size > 0])
    assert.deepEqual(listed, [
      ['config.yaml', true],
      ['notes/deep/a b.bin', true],
    ])
    await files.remove(id, 'notes/deep/a b.bin')
    await assert.rejects(stat(join(home, 'notes')), { code: 'ENOENT' })
    await assert.rejects(files.read(id, 'notes/deep/a b.bin'), code('not_found'))
    await assert.rejects(files.remove(id, 'notes/deep/a b.bin'), code('not_found'))
    await assert.rejects(files.list('ws_none'), code('not_found'))
  })

  test('PL-17 no path leads out of the folder', async () => {
    const { id, home } = await make()
    await symlink(folder, join(home, 'out'))
    await symlink(join(folder, 'molecule.db'), join(home, 'db'))
    await mkdir(join(home, 'folder'))
    const hostile = [
      ...[
        '..',
        '../x',
        'a/../../x',
        '.',
        './x',
        '/etc/passwd',
        '',
        'a//b',
        'a/',
        '/',
        'a\0b',
        'a\nb',
        'a\\..\\b',
        'C:x',
      ],
      ...[
        'x'.repeat(256),
        Array(17).fill('a').join('/'),
        Array(300).fill('abcd').join('/'),
        'a\u202Eb',
        'dot.',
        'space ',
      ],
      ...['out/molecule.db', 'out/new', 'db', 'folder', 'config.yaml/x', 'work/x', 'Work/x'],
    ]
    for (const path of hostile) {
      await assert.rejects(files.read(id, path), code('invalid_request'), path)
      await assert.rejects(files.write(id, path, Buffer.from('x')), code('invalid_request'), path)
      await assert.rejects(files.remove(id, path), code('invalid_request'), path)
    }
    assert.deepEqual(
      (await files.list(id)).map(({ path }) => path),
      ['config.yaml'],
    )
  })

  test('PL-17 a pipe is refused without waiting for a writer', async () => {
    const { id, home } = await make()
    execFileSync('sh', ['-c', 'mkfifo pipe'], { cwd: home })
    await assert.rejects(files.read(id, 'pipe'), code('invalid_request'))
  })

  test('PL-17 secrets can be written and are never returned', async () => {
    const { id, home } = await make({ auth_token_file: './keys/mine' })
    for (const path of ['.auth-token', 'keys/mine']) {
      await files.write(id, path, Buffer.from('secret'))
      assert.equal(await readFile(join(home, path), 'utf8'), 'secret')
      await assert.rejects(files.read(id, path), code('forbidden', /never shown/))
    }
    await assert.rejects(files.read(id, '.AUTH-Token'), code('forbidden'))
    assert.ok((await files.list(id)).some(({ path }) => path === '.auth-token'))
    await files.remove(id, '.auth-token')
  })

  test('PL-17 an invalid config is refused with its line and not written', async () => {
    const { id, home } = await make()
    const old = await readFile(join(home, 'config.yaml'), 'utf8')
    const bad = Buffer.from('name: a\nruntime_config:\n  max_attempts: many\n')
    await assert.rejects(files.write(id, 'config.yaml', bad), code('invalid_request', /config\.yaml:3: /))
    const noFolder = Buffer.from(`name: a\nworking_dir: ${folder}/none\n`)
    await assert.rejects(files.write(id, 'config.yaml', noFolder), code('invalid_request', /working_dir/))
    await assert.rejects(files.write(id, 'Config.YAML', bad), code('invalid_request', /config\.yaml:3: /))
    await assert.rejects(files.write(id, 'config.yaml', Buffer.from([255])), code('invalid_request', /UTF-8/))
    await assert.rejects(files.remove(id, 'config.yaml'), code('unsupported_operation'))
    assert.equal(await readFile(join(home, 'config.yaml'), 'utf8'), old)
    await files.write(id, 'config.yaml', Buffer.from(`# kept\nname: b\nruntime: exec\n`))
    assert.equal((await files.read(id, 'config.yaml')).toString(), '# kept\nname: b\nruntime: exec\n')
  })

  test('PL-17 a file that is too large is not read, and a workspace has at most 1000 files', async () => {
    const { id, home } = await make()
    await writeFile(join(home, 'large'), Buffer.alloc(FILE_BYTES_MAX + 1))
    await assert.rejects(files.read(id, 'large'), code('too_large'))
    await Promise.all(Array.from({ length: FILES_MAX }, (_, n) => writeFile(join(home, `f${n}`), '')))
    await assert.rejects(files.write(id, 'one-more', Buffer.from('x')), code('invalid_request', /1000 files/))
    assert.equal(await files.write(id, 'f1', Buffer.from('x')), false)
    assert.equal((await files.list(id)).length, FILES_MAX)
  })

  test('PL-17 a file of exactly 25 MiB is read, a larger one is refused with the limit', async () => {
    const { id, home } = await make()
    await writeFile(join(home, 'file'), 'x')
    await truncate(join(home, 'file'), 26_214_400)
    assert.equal((await files.read(id, 'file')).length, 26_214_400)
    await truncate(join(home, 'file'), 26_214_401)
    await assert.rejects(files.read(id, 'file'), {
      code: 'too_large',
      message: 'file is larger than 26214400 bytes',
      details: { limitBytes: 26_214_400 },
    })
    await assert.rejects(files.read(id, 'none'), { code: 'not_found', message: 'there is no file none' })
  })

  test('RE-7 a file is closed after it was read', async () => {
    const { id } = await make()
    const open = async () => (await readdir('/dev/fd')).length
    const first = await open()
    for (let reads = 0; reads < 50; reads++) await files.read(id, 'config.yaml')
    assert.ok((await open()) < first + 40)
  })

  test('PL-17 files are listed by path with size and time, up to 16 levels, without links and without the working folder', async () => {
    const { id, home } = await make()
    const deep = Array(15).fill('d').join('/')
    for (const path of [deep, 'a/work', 'work/inside', 'b']) await mkdir(join(home, path), { recursive: true })
    for (const file of ['z', 'b/2', 'b/1', 'a/work/x', 'work/inside/y', `${deep}/last`])
      await writeFile(join(home, file), 'xyz')
    await mkdir(join(home, deep, 'e'))
    await writeFile(join(home, deep, 'e', 'too-deep'), 'x')
    await symlink(join(home, 'z'), join(home, 'link'))
    const listed = await files.list(id)
    assert.deepEqual(
      listed.map(({ path }) => path),
      ['a/work/x', 'b/1', 'b/2', 'config.yaml', `${deep}/last`, 'z'],
    )
    const { mtimeMs } = await stat(join(home, 'z'))
    assert.deepEqual(listed.at(-1), { path: 'z', size: 3, modifiedAtMs: mtimeMs })
  })

  test('PL-17 the folders of a new file are private, and a removed file leaves folders with other files', async () => {
    const { id, home } = await make()
    await files.write(id, 'a/b/one', Buffer.from('1'))
    for (const path of ['a', 'a/b']) assert.equal((await stat(join(home, path))).mode & 0o777, 0o700)
    await files.write(id, 'a/two', Buffer.from('2'))
    await files.remove(id, 'a/b/one')
    assert.deepEqual(await readdir(join(home, 'a')), ['two'])
    await files.remove(id, 'a/two')
    assert.deepEqual((await readdir(home)).sort(), ['config.yaml', 'work'])
  })

  test('PL-17 a check refuses what a write refuses, and writes nothing', async () => {
    const { id, home } = await make()
    assert.deepEqual(await files.check(id, 'new', Buffer.from('x')), { ok: true })
    assert.deepEqual(await files.check(id, 'config.yaml', Buffer.from('name: b\n')), { ok: true, warnings: [] })
    await assert.rejects(files.check(id, 'config.yaml', Buffer.from('name: [')), code('invalid_request'))
    await mkdir(join(home, 'folder'))
    await assert.rejects(files.check(id, 'folder', Buffer.from('x')), code('invalid_request'))
    await assert.rejects(files.check(id, '../x', Buffer.from('x')), code('invalid_request'))
    await assert.rejects(files.check('ws_none', 'x', Buffer.from('x')), code('not_found'))
    assert.deepEqual((await readdir(home)).sort(), ['config.yaml', 'folder', 'work'])
    await Promise.all(Array.from({ length: FILES_MAX - 1 }, (_, n) => writeFile(join(home, `f${n}`), '')))
    await assert.rejects(files.check(id, 'one-more', Buffer.from('x')), code('invalid_request', /1000 files/))
  })

  test('PL-17 the last file below the limit of 1000 is written', async () => {
    const { id, home } = await make()
    await Promise.all(Array.from({ length: 998 }, (_, n) => writeFile(join(home, `f${n}`), '')))
    assert.equal(await files.write(id, 'last', Buffer.from('x')), true)
    await assert.rejects(files.write(id, 'one-more', Buffer.from('x')), {
      code: 'invalid_request',
      message: 'there are already 1000 files: remove some first',
    })
    await writeFile(join(home, 'more'), '')
    assert.equal((await files.list(id)).length, 1000)
  })

  test('PL-17 the files of a workspace of another machine are not here, and those of an unknown one are not found', async () => {
    const { id, home } = await make()
    await rm(home, { recursive: true })
    const elsewhere = { code: 'unsupported_operation', message: `the files of ${id} are on another machine` }
    await assert.rejects(files.list(id), elsewhere)
    await assert.rejects(files.read(id, 'x'), elsewhere)
    await assert.rejects(files.write(id, 'x', Buffer.from('x')), elsewhere)
    await assert.rejects(files.check(id, 'x', Buffer.from('x')), elsewhere)
    await assert.rejects(files.remove(id, 'x'), elsewhere)
    for (const work of [
      files.read('ws_none', 'x'),
      files.write('ws_none', 'x', Buffer.from('x')),
      files.remove('ws_none', 'x'),
    ])
      await assert.rejects(work, code('not_found'))
  })

  test('PL-11 the owner moves the working folder through the file; one that does not exist is refused at its line', async () => {
    const { id, home, get } = await make()
    const write = (text: string) => files.write(id, 'config.yaml', Buffer.from(text))
    assert.equal(await write(`name: a\nworking_dir: ${folder}\n`), false)
    assert.equal((await get())?.workingDir, folder)
    assert.equal(await write('name: renamed\n'), false)
    assert.deepEqual([(await get())?.name, (await get())?.workingDir], ['renamed', folder])
    const problem = 'working_dir: there is no folder /does/not/exist'
    for (const [text, line] of [
      ['name: a\nruntime_config:\n  x: 1\nworking_dir: /does/not/exist\n', 4],
      ['name: a\nruntime_config:\n  x: 1\n  working_dir: /does/not/exist\n', 4],
    ] as const) {
      const error = await write(text).catch((thrown: unknown) => thrown)
      assert.ok(error instanceof MoleculeError)
      assert.equal(error.code, 'invalid_request')
      assert.ok(error.message.includes(`config.yaml:${line}: `) && error.message.includes(problem), error.message)
      assert.ok(Array.isArray(error.details['problems']))
    }
    assert.equal(await readFile(join(home, 'config.yaml'), 'utf8'), 'name: renamed\n')
  })

  test('PL-17 a secret of another workspace, and a file that is no secret, are read', async () => {
    const { id, home } = await make({ auth_token_file: 'keys/mine' })
    await mkdir(join(home, 'keys'))
    await writeFile(join(home, 'keys', 'other'), 'plain')
    assert.equal((await files.read(id, 'keys/other')).toString(), 'plain')
    const plain = await make()
    await files.write(plain.id, 'keys/mine', Buffer.from('plain'))
    assert.equal((await files.read(plain.id, 'keys/mine')).toString(), 'plain')
  })

  test('PL-17 a file whose name is as long as a path allows is written', async () => {
    const { id, home } = await make()
    const name = 'n'.repeat(255)
    assert.equal(await files.write(id, name, Buffer.from('x')), true)
    assert.deepEqual((await readdir(home)).sort(), ['config.yaml', name, 'work'])
  })
})

test('RE-4 a folder or a file that comes into the way of a file while it is written is named, and not replaced', async (t) => {
  const { homes, workspaces, ...opened } = openTestWorkspaces(t)
  const files = createWorkspaceFiles({ ...opened, homes })
  const { id } = await workspaces.create({ name: 'n', runtime: 'mock' })
  const home = homes.path(id)
  // The write counts these between its check of the path and the write itself.
  await Promise.all(Array.from({ length: 900 }, (_, n) => writeFile(join(home, `f${n}`), '')))
  const during = async (path: string, meanwhile: () => Promise<unknown>) => {
    const writing = files.write(id, path, Buffer.from('x'))
    for (let looks = 0; looks < 20; looks++) await stat(home)
    await meanwhile()
    await assert.rejects(writing, {
      code: 'invalid_request',
      message: new RegExp(`${path}.* is a folder|${path} .*not a folder`),
    })
  }
  await during('folder', () => mkdir(join(home, 'folder')))
  await during('one/x', () => writeFile(join(home, 'one'), 'kept'))
  await during('two/x/y', () => writeFile(join(home, 'two'), 'kept'))
  assert.ok((await stat(join(home, 'folder'))).isDirectory())
  for (const name of ['one', 'two']) assert.equal(await readFile(join(home, name), 'utf8'), 'kept')
})
