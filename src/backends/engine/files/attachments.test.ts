import assert from 'node:assert/strict'
import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rm,
  stat,
  symlink,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { serve } from '../../../../test/harness/loopback-server.ts'
import { createOutbound } from '../../../client/outbound.ts'
import { systemClock } from '../../../clock.ts'
import type { RequestPart } from '../../../protocol/request.ts'
import { ATTACHMENT_BYTES_MAX, collectFile, writeAttachments } from './attachments.ts'

const forEver = new AbortController().signal
const closed = createOutbound()
const open = createOutbound({ allow: ['127.0.0.1'] })
const base64 = (text: string) => Buffer.from(text).toString('base64')

async function workingFolder(t: TestContext): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'molecule-attachments-')))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return folder
}

const write = (workingDir: string, parts: readonly RequestPart[], { outbound = closed, turnId = 'msg_1.1' } = {}) =>
  writeAttachments(parts, { workingDir, turnId, outbound, clock: systemClock }, forEver)

test('PL-17 file, data and URL parts become files in the working folder, named in the prompt', async (t) => {
  const workingDir = await workingFolder(t)
  const { url } = await serve(t, (_request, response) => void response.end('from afar'))
  const parts: RequestPart[] = [
    { type: 'text', text: 'look' },
    { type: 'file', bytes: base64('inline'), filename: 'note.txt', mime_type: 'text/plain' },
    { type: 'file', bytes: base64('again'), filename: 'NOTE.txt' },
    { type: 'file', bytes: base64('pixels'), mime_type: 'image/png' },
    { type: 'data', data: { a: 1 } },
    { type: 'file', uri: `${url}/far/pic%20ture.jpg?signature=secret` },
  ]
  const { files, promptLines, cleanUp } = await write(workingDir, parts, { outbound: open })
  const at = join(workingDir, '.molecule', 'inbox', 'msg_1.1')
  assert.deepEqual(
    files.map(({ path, bytes }) => [path, bytes]),
    [
      [join(at, 'note.txt'), 6],
      [join(at, 'NOTE-2.txt'), 5],
      [join(at, 'attachment-3.png'), 6],
      [join(at, 'attachment-4.json'), 13],
      [join(at, 'pic ture.jpg'), 9],
    ],
  )
  assert.equal(await readFile(join(at, 'pic ture.jpg'), 'utf8'), 'from afar')
  assert.deepEqual(JSON.parse(await readFile(join(at, 'attachment-4.json'), 'utf8')), { a: 1 })
  assert.equal((await stat(at)).mode & 0o777, 0o700)
  assert.equal((await stat(join(at, 'note.txt'))).mode & 0o777, 0o600)
  assert.equal(promptLines[1], '- .molecule/inbox/msg_1.1/note.txt (text/plain, 6 bytes)')
  assert.equal(promptLines.length, 6)
  assert.ok(!promptLines.join().includes('secret'))
  await cleanUp()
  assert.deepEqual(await readdir(join(workingDir, '.molecule', 'inbox')), [])
})

test('PL-17 a message of text only makes no folder, and the next attachment removes old files', async (t) => {
  const workingDir = await workingFolder(t)
  assert.deepEqual((await write(workingDir, [{ type: 'text', text: 'hi' }])).promptLines, [])
  assert.deepEqual(await readdir(workingDir), [])
  await write(workingDir, [{ type: 'data', data: 1 }], { turnId: 'old.1' })
  const old = join(workingDir, '.molecule', 'inbox', 'old.1')
  await utimes(old, 1, 1)
  await write(workingDir, [{ type: 'data', data: 2 }], { turnId: 'new.1' })
  assert.deepEqual(await readdir(join(workingDir, '.molecule', 'inbox')), ['new.1'])
})

test('PL-17 no name, turn id or link leads out of the working folder', async (t) => {
  const workingDir = await workingFolder(t)
  const outside = await workingFolder(t)
  const names = ['../../../evil', '/etc/evil', '..', '.bashrc', 'a\nb']
  const parts = names.map((filename): RequestPart => ({ type: 'file', bytes: base64('x'), filename }))
  const { files, promptLines } = await write(workingDir, parts, { turnId: '../../../../out' })
  const inbox = join(workingDir, '.molecule', 'inbox', 'out')
  for (const { path } of files) assert.equal(join(inbox, path.slice(inbox.length + 1)), path)
  assert.deepEqual((await readdir(inbox)).sort(), ['a_b', 'attachment-3', 'bashrc', 'evil', 'evil-2'])
  assert.ok(promptLines.every((line) => !line.includes('\n')))

  await rm(join(workingDir, '.molecule'), { recursive: true })
  await symlink(outside, join(workingDir, '.molecule'))
  await assert.rejects(write(workingDir, parts), { code: 'bad_config', message: /is not a folder/ })
  assert.deepEqual(await readdir(outside), [])
})

test('PL-17 a URL or a redirect to an internal address is refused before it is called', async (t) => {
  const workingDir = await workingFolder(t)
  const { url, visits } = await serve(t, (_request, response) => void response.end('secret'))
  for (const uri of [url, 'http://169.254.169.254/latest', 'file:///etc/passwd', 'http://[::1]/', 'nonsense']) {
    await assert.rejects(write(workingDir, [{ type: 'file', uri }]), { code: 'bad_attachment', message: /refused/ })
  }
  assert.equal(visits.length, 0)
  const hop = await serve(
    t,
    (_request, response) => void response.writeHead(302, { Location: 'http://10.0.0.1/' }).end(),
  )
  const away = { outbound: open }
  await assert.rejects(write(workingDir, [{ type: 'file', uri: hop.url }], away), {
    message: /10\.0\.0\.1 is a private/,
  })
  assert.deepEqual(await readdir(join(workingDir, '.molecule', 'inbox')), [])
})

test('PL-17 attachments beyond the limit, also fetched ones, fail and leave no file', async (t) => {
  const workingDir = await workingFolder(t)
  const half: RequestPart = { type: 'file', bytes: Buffer.alloc(ATTACHMENT_BYTES_MAX / 2 + 1).toString('base64') }
  const tooLarge = { code: 'bad_attachment', retryable: false, message: /larger than 26214400 bytes/ }
  await assert.rejects(write(workingDir, [half, half]), tooLarge)
  const { url } = await serve(t, (_request, response) => {
    const more = () => {
      while (!response.destroyed && response.write(Buffer.alloc(1024 * 1024)));
    }
    response.on('drain', more)
    more()
  })
  await assert.rejects(write(workingDir, [half, { type: 'file', uri: url }], { outbound: open }), tooLarge)
  const many = Array.from({ length: 65 }, (): RequestPart => ({ type: 'data', data: 1 }))
  await assert.rejects(write(workingDir, many), { message: /more than 64 files/ })
  assert.deepEqual(await readdir(join(workingDir, '.molecule', 'inbox')), [])
})

test('PL-17 a URL that answers with an error fails with its status, retryable or not', async (t) => {
  const workingDir = await workingFolder(t)
  for (const [status, retryable] of [
    [404, false],
    [503, true],
  ] as const) {
    const { url } = await serve(t, (_request, response) => void response.writeHead(status).end('no'))
    const parts: RequestPart[] = [{ type: 'file', uri: `${url}/x?key=secret` }]
    await assert.rejects(write(workingDir, parts, { outbound: open }), (error: Error) => {
      assert.ok(!error.message.includes('secret'))
      assert.match(error.message, new RegExp(`answered ${status}`))
      assert.equal((error as Error & { retryable: boolean }).retryable, retryable)
      return true
    })
  }
})

test('PL-17 a file of the working folder becomes a part, a file from elsewhere never does', async (t) => {
  const workingDir = await workingFolder(t)
  const outside = await workingFolder(t)
  await mkdir(join(workingDir, 'out'))
  await writeFile(join(workingDir, 'out', 'chart.png'), 'pixels')
  await writeFile(join(outside, 'secret.txt'), 'secret')
  await symlink(join(outside, 'secret.txt'), join(workingDir, 'link.txt'))
  await symlink(outside, join(workingDir, 'folder'))
  await symlink(join(workingDir, 'out', 'chart.png'), join(workingDir, 'inner.png'))
  const chart = { raw: base64('pixels'), filename: 'chart.png', mediaType: 'image/png' }
  assert.deepEqual(await collectFile('out/chart.png', workingDir), chart)
  assert.deepEqual(await collectFile(join(workingDir, 'inner.png'), workingDir), chart)
  for (const path of [
    'link.txt',
    'folder/secret.txt',
    '../secret.txt',
    join(outside, 'secret.txt'),
    '/etc/passwd',
    '.',
  ]) {
    await assert.rejects(collectFile(path, workingDir), { code: /forbidden|not_found/ }, path)
  }
  // A folder whose name begins with the name of the working folder is not inside it.
  await mkdir(`${workingDir}-other`)
  t.after(() => rm(`${workingDir}-other`, { recursive: true }))
  await writeFile(`${workingDir}-other/x`, 'x')
  await assert.rejects(collectFile(`${workingDir}-other/x`, workingDir), { code: 'forbidden' })
  await assert.rejects(collectFile('out', workingDir), { code: 'not_found', message: /not a file/ })
  await assert.rejects(collectFile('nothing', workingDir), { code: 'not_found' })
  await writeFile(join(workingDir, 'huge'), '')
  await truncate(join(workingDir, 'huge'), ATTACHMENT_BYTES_MAX + 1)
  await assert.rejects(collectFile('huge', workingDir), { code: 'too_large' })
})
