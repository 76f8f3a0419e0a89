/** Workspaces on a real platform: their folders, config.yaml, and every route that manages them. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { pidsWithCommandLine, uniqueSeconds } from '../harness/live-processes.ts'
import {
  getWorkspace,
  type PlatformUnderTest,
  reasonText,
  replyText,
  startPlatform,
  withPlatform,
} from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

const homeOf = ({ dataDir }: PlatformUnderTest, id: string) => join(dataDir, 'workspaces', id.replace('ws_', 'ws-'))
const configOf = (platform: PlatformUnderTest, id: string) => join(homeOf(platform, id), 'config.yaml')

test(
  "PL-2 a new workspace gets a private home with config.yaml and a working folder; one of claude also the default template's token",
  withPlatform(async (platform) => {
    const template = join(platform.dataDir, 'templates', 'claude-code-default')
    await mkdir(template, { recursive: true })
    await writeFile(join(template, '.auth-token'), 'secret-token\n', { mode: 0o644 })
    const id = await platform.exec('pwd', { name: 'My Agent', role: 'Does things', model: 'large' })
    const ofClaude = await platform.request('POST', '/workspaces', { name: 'claude', runtime: 'claude-code' })
    const home = homeOf(platform, id)
    assert.equal((await stat(home)).mode & 0o777, 0o700)
    const config = await readFile(configOf(platform, id), 'utf8')
    assert.equal(
      config,
      'name: My Agent\nrole: Does things\nruntime: exec\nmodel: large\nruntime_config:\n  cmd: pwd\n',
    )
    const token = join(homeOf(platform, ofClaude.body.id), '.auth-token')
    assert.equal(await readFile(token, 'utf8'), 'secret-token\n')
    assert.equal((await stat(token)).mode & 0o777, 0o600)
    assert.equal(existsSync(join(home, '.auth-token')), false)
    assert.equal(replyText(await platform.send(id, '')), `${join(home, 'work')}\n`)
  }),
)

test(
  'PL-2 a template is copied without symbolic links and filled in; an unknown template is refused',
  withPlatform(async (platform) => {
    const template = join(platform.dataDir, 'templates', 'echo')
    await mkdir(join(template, 'notes'), { recursive: true })
    await writeFile(
      join(template, 'config.yaml'),
      '# ours\nname: x\nrole: repeats\nruntime: exec\nruntime_config: {cmd: cat}\n',
    )
    await writeFile(join(template, 'notes', 'a.md'), 'hello')
    await symlink('/etc/passwd', join(template, 'out'))
    const made = await platform.request('POST', '/workspaces', { name: 'Echo', template: 'echo' })
    assert.deepEqual([made.status, made.body.role, made.body.status], [201, 'repeats', 'online'])
    const home = homeOf(platform, made.body.id)
    assert.deepEqual((await readdir(home)).sort(), ['config.yaml', 'notes', 'work'])
    assert.match(await readFile(join(home, 'config.yaml'), 'utf8'), /^# ours\nname: Echo\n/)
    assert.equal(replyText(await platform.send(made.body.id, 'hi')), 'hi')
    for (const name of ['none', '..', '../templates/echo', '/etc', 'echo/notes', '.']) {
      const { status, body } = await platform.request('POST', '/workspaces', { name: 'a', template: name })
      assert.equal(status, 400, name)
      assert.match(body.error.message, /no template.*known: echo/)
    }
  }),
)

test(
  'PL-3 the next turn uses a changed config.yaml; an invalid one fails only that workspace until it is fixed',
  withPlatform(async (platform) => {
    const [id, other] = [await platform.exec('echo one'), await platform.exec('cat')]
    const path = configOf(platform, id)
    const good = (await readFile(path, 'utf8')).replace('echo one', 'echo two').replace('name: test', 'name: renamed')
    assert.equal(replyText(await platform.send(id, '')), 'one\n')
    await writeFile(path, good)
    assert.equal(replyText(await platform.send(id, '')), 'two\n')
    assert.equal((await getWorkspace(platform, id)).name, 'renamed')
    const bad: readonly [string, RegExp][] = [
      [good.replace('exec', '[exec'), /config\.yaml:\d+: /],
      [good.replace('exec', 'nothing'), /config\.yaml:3: unknown backend "nothing"/],
      [good.replace('cmd: ', 'command: '), /config\.yaml:\d+: .*"cmd" is required/],
      [good.replace('name: renamed\n', ''), /config\.yaml:1: name/],
    ]
    for (const [text, problem] of bad) {
      await writeFile(path, text)
      const failed = await platform.send(id, '')
      assert.equal(failed.status.state, 'TASK_STATE_FAILED')
      assert.match(reasonText(failed), problem)
      const seen = await getWorkspace(platform, id)
      assert.equal(seen.status, 'failed')
      assert.match(seen.status_reason, problem)
      assert.ok(seen.status_reason.includes(path))
      assert.equal(replyText(await platform.send(other, 'alive')), 'alive')
    }
    await writeFile(path, good)
    const mended = await getWorkspace(platform, id)
    assert.deepEqual([mended.status, mended.status_reason], ['online', undefined])
    assert.equal(replyText(await platform.send(id, '')), 'two\n')
    await rm(path)
    assert.equal(replyText(await platform.send(id, '')), 'two\n')
    assert.match(await readFile(path, 'utf8'), /name: renamed/)
  }),
)

test(
  'PL-2 PATCH writes config.yaml, keeps its comments, and refuses parent circles and invalid values',
  withPlatform(async (platform) => {
    const [id, child] = [await platform.exec('echo one'), await platform.exec('cat')]
    const path = configOf(platform, id)
    await writeFile(path, `# mine\n${await readFile(path, 'utf8')}`)
    const patch = (of: string, body: object) => platform.request('PATCH', `/workspaces/${of}`, body)
    const changed = await patch(id, {
      name: 'Ada',
      role: 'r',
      model: 'm',
      max_attempts: 2,
      max_concurrent_tasks: 3,
      permission: 'bypass',
      tier: 2,
      runtime_config: { cmd: 'echo two', extra: 'x' },
    })
    assert.equal(changed.status, 200, JSON.stringify(changed.body))
    const { name, max_attempts, max_concurrent_tasks, permission, tier, runtime_config } = changed.body
    assert.deepEqual([name, max_attempts, max_concurrent_tasks, permission, tier], ['Ada', 2, 3, 'bypass', 2])
    assert.equal(runtime_config.extra, 'x')
    assert.match(await readFile(path, 'utf8'), /^# mine\nname: Ada\n/)
    assert.equal(replyText(await platform.send(id, '')), 'two\n')
    assert.equal((await patch(child, { parent_id: id })).body.parent_id, id)
    for (const body of [{ parent_id: child }, { parent_id: id }, { parent_id: 'ws_none' }]) {
      const refused = await patch(id, body)
      assert.equal(refused.status, 400)
      assert.match(refused.body.error.message, /parent_id/)
    }
    for (const body of [{ runtime: 'nothing' }, { runtime_config: { cmd: null } }, { template: 'x' }, { name: '' }]) {
      const refused = await patch(id, { permission: 'ask', ...body })
      assert.equal(refused.status, 400, JSON.stringify(body))
      assert.doesNotMatch(refused.body.error.message, /config\.yaml/, 'the file has no such line')
    }
    assert.equal((await getWorkspace(platform, id)).permission, 'bypass', 'a change is refused as a whole')
    assert.equal(replyText(await platform.send(id, '')), 'two\n', 'a refused change is not written')
    const own = await readFile(path, 'utf8')
    await writeFile(path, own.replace('runtime: exec', 'runtime: gone'))
    const { error } = (await patch(id, { role: 'x' })).body
    assert.match(
      error.message,
      /\/config\.yaml:\d+: unknown backend "gone"/,
      'the line of a file that was wrong before',
    )
    await writeFile(path, own)
    assert.equal('parent_id' in (await patch(child, { parent_id: null })).body, false)
    assert.equal((await patch('ws_none', { name: 'x' })).status, 404)
  }),
)

test(
  'PL-11 working_dir must be an absolute path of an existing folder; a turn without it fails with the reason',
  withPlatform(async (platform) => {
    const folder = join(platform.dataDir, 'project')
    const file = join(platform.dataDir, 'admin-token')
    const make = (working_dir: string) =>
      platform.request('POST', '/workspaces', {
        name: 'a',
        runtime: 'exec',
        runtime_config: { cmd: 'pwd' },
        working_dir,
      })
    for (const wrong of [folder, file, 'relative', `${file}/x`]) {
      const { status, body } = await make(wrong)
      assert.equal(status, 400, wrong)
      assert.match(body.error.message, /working_dir/)
    }
    await mkdir(folder)
    const made = await make(folder)
    assert.equal(made.status, 201)
    assert.equal(replyText(await platform.send(made.body.id, '')), `${folder}\n`)
    const patched = await platform.request('PATCH', `/workspaces/${made.body.id}`, { working_dir: `${folder}/none` })
    assert.equal(patched.status, 400)
    await rm(folder, { recursive: true })
    const failed = await platform.send(made.body.id, '')
    assert.match(reasonText(failed), /working_dir: there is no folder .*project/)
    const config = await readFile(configOf(platform, made.body.id), 'utf8')
    await writeFile(configOf(platform, made.body.id), `${config}working_dir: /\n`)
    assert.equal(
      (await getWorkspace(platform, made.body.id)).working_dir,
      folder,
      'writing config.yaml does not change working_dir',
    )
    // The file is replaced by a rename, so a write is a new inode.
    const { ino } = await stat(configOf(platform, made.body.id))
    const moved = await platform.request('PATCH', `/workspaces/${made.body.id}`, { working_dir: platform.dataDir })
    assert.deepEqual([moved.status, moved.body.working_dir], [200, platform.dataDir])
    assert.equal((await stat(configOf(platform, made.body.id))).ino, ino, 'config.yaml was written')
  }),
)

test(
  'PL-2 DELETE needs a confirmation, fails waiting messages, kills the turn, and moves the home to the trash',
  withPlatform(async (platform) => {
    const seconds = uniqueSeconds()
    const parent = await platform.exec(`sleep ${seconds}`, { name: 'Boss', runtime_config: { timeout: 'none' } })
    const child = await platform.exec('cat', { parent_id: parent })
    const remove = (query: string) => platform.request('DELETE', `/workspaces/${parent}${query}`)
    assert.equal((await remove('')).status, 400)
    assert.match((await remove('?confirm=Other')).body.error.message, /confirm/)
    const refused = await remove('?confirm=Boss')
    assert.deepEqual([refused.status, /1 workspace below.*cascade/.test(refused.body.error.message)], [400, true])
    const waiting = [platform.send(parent, 'runs'), platform.send(parent, 'waits')]
    await waitUntil(() => pidsWithCommandLine(`sleep ${seconds}`).length > 0)
    await waitUntil(async () => (await getWorkspace(platform, parent)).queue_depth === 1)
    const removed = await remove(`?confirm=${parent}&cascade=true`)
    assert.deepEqual([removed.status, removed.body.deleted], [200, [child, parent]])
    for (const task of await Promise.all(waiting)) {
      assert.equal(task.status.state, 'TASK_STATE_FAILED')
      assert.equal(reasonText(task), 'the workspace was deleted')
    }
    await waitUntil(() => pidsWithCommandLine(`sleep ${seconds}`).length === 0)
    for (const id of [parent, child]) assert.equal((await platform.request('GET', `/workspaces/${id}`)).status, 404)
    const late = await platform.rpc(parent, 'SendMessage', {
      message: { messageId: 'late', role: 'ROLE_USER', parts: [{ text: 'x' }] },
    })
    assert.equal(late.body.error.data[0].reason, 'WORKSPACE_NOT_FOUND')
    assert.deepEqual(await readdir(join(platform.dataDir, 'workspaces')), [])
    assert.equal((await readdir(join(platform.dataDir, 'trash'))).length, 2)
    assert.equal((await remove('?confirm=Boss')).status, 404)
  }),
)

test(
  'PL-2 a paused workspace keeps its queue and shows why; now=true kills the turn; resume continues',
  withPlatform(async (platform) => {
    const seconds = uniqueSeconds()
    const flag = join(platform.dataDir, 'second-time')
    const id = await platform.exec(`if test -e ${flag}; then cat; else touch ${flag}; sleep ${seconds}; fi`, {
      runtime_config: { timeout: 'none' },
    })
    const pause = (query = '') => platform.request('POST', `/workspaces/${id}/pause${query}`)
    const first = platform.send(id, 'first')
    // The shell has the words of the sleep in its own command line, also before it has run `touch`.
    await waitUntil(() => existsSync(flag) && pidsWithCommandLine(`sleep ${seconds}`).length > 0)
    assert.equal((await pause()).body.status, 'paused')
    assert.equal(pidsWithCommandLine(`sleep ${seconds}`).length > 0, true, 'pause lets the running turn finish')
    const second = await platform.send(id, 'second')
    assert.equal(second.status.state, 'TASK_STATE_SUBMITTED')
    assert.match(reasonText(second), /paused/)
    assert.equal((await pause('?now=maybe')).status, 400)
    assert.equal((await pause('?now=true')).status, 200)
    await waitUntil(() => pidsWithCommandLine(`sleep ${seconds}`).length === 0)
    assert.equal((await first).status.state, 'TASK_STATE_WORKING')
    await waitUntil(async () => (await getWorkspace(platform, id)).queue_depth === 2)
    assert.equal((await platform.request('POST', `/workspaces/${id}/resume`)).body.status, 'online')
    const task = async (taskId: string) => (await platform.rpc(id, 'GetTask', { id: taskId })).body.result
    await waitUntil(async () => (await task(second.id)).status.state === 'TASK_STATE_COMPLETED')
    assert.match(replyText(await task((await first).id)) ?? '', /first$/)
  }),
)

test('PL-3 at start only the workspace with an invalid config is failed; restarting it checks again', async () => {
  let platform = await startPlatform()
  const { dataDir } = platform
  try {
    const [id, other] = [await platform.exec('cat'), await platform.exec('cat')]
    await platform.stop()
    const path = configOf(platform, id)
    const good = await readFile(path, 'utf8')
    await writeFile(path, good.replace('exec', 'gone'))
    platform = await startPlatform({ dataDir })
    await waitUntil(async () => (await platform.request('GET', '/workspaces')).body.workspaces[0].status === 'failed')
    assert.match((await getWorkspace(platform, id)).status_reason, /config\.yaml:3: unknown backend "gone"/)
    assert.equal(replyText(await platform.send(other, 'alive')), 'alive')
    await writeFile(path, good)
    assert.equal((await platform.request('POST', `/workspaces/${id}/restart`)).body.status, 'online')
    assert.equal((await platform.request('POST', '/workspaces/ws_none/restart')).status, 404)
  } finally {
    await platform.dispose()
    await rm(dataDir, { recursive: true, force: true })
  }
})

test(
  'PL-17 files are read and written unchanged over HTTP, within the limit and inside the home',
  withPlatform(async (platform) => {
    const id = await platform.exec('cat')
    const files = async (method: string, path: string, body?: Uint8Array<ArrayBuffer>) =>
      await fetch(`${platform.url}/workspaces/${id}/files${path}`, {
        method,
        headers: { Authorization: `Bearer ${platform.token}` },
        ...(body && { body }),
      })
    const content = new Uint8Array([0, 1, 254, 255])
    const large = new Uint8Array(25 * 1024 * 1024)
    assert.equal((await files('PUT', '/a%20folder/%C3%BC.bin', content)).status, 201)
    assert.equal((await files('PUT', '/a%20folder/%C3%BC.bin', content)).status, 200)
    const read = await files('GET', '/a%20folder/%C3%BC.bin')
    assert.deepEqual(new Uint8Array(await read.arrayBuffer()), content)
    assert.equal(read.headers.get('content-disposition'), 'attachment')
    assert.equal(read.headers.get('x-content-type-options'), 'nosniff')
    const { files: listed } = (await (await files('GET', '')).json()) as { files: { path: string; size: number }[] }
    assert.deepEqual(
      listed.map(({ path }) => path),
      ['a folder/ü.bin', 'config.yaml'],
    )
    assert.equal((await files('PUT', '/large', large)).status, 201)
    assert.equal((await files('PUT', '/larger', new Uint8Array(large.length + 1))).status, 413)
    for (const path of ['/..%2f..%2fadmin-token', '/%2e%2e/x', '/a%00b', '/%E0%A4%A', '//x', '/%2Fetc%2Fpasswd']) {
      const { status } = await files('GET', path)
      assert.ok(status === 400 || status === 404, `${path}: ${status}`)
    }
    const bad = await files('PUT', '/config.yaml', new TextEncoder().encode('name: a\nruntime: nothing\n'))
    assert.equal(bad.status, 400)
    assert.match(
      ((await bad.json()) as { error: { message: string } }).error.message,
      /config\.yaml:2: unknown backend/,
    )
    const good = 'name: Put\nruntime: exec\nruntime_config:\n  cmd: echo put\n'
    assert.equal((await files('PUT', '/config.yaml', new TextEncoder().encode(good))).status, 200)
    assert.equal(replyText(await platform.send(id, '')), 'put\n')
    assert.equal((await files('DELETE', '/large')).status, 204)
    assert.equal((await files('GET', '/large')).status, 404)
    assert.equal((await fetch(`${platform.url}/workspaces/${id}/files`)).status, 401)
  }),
)

test(
  'PL-6 activity is read from a cursor, takes notes of up to 4 KiB, and a pruned cursor gets 410',
  withPlatform(async (platform) => {
    const id = await platform.exec('cat')
    const task = await platform.send(id, 'hello')
    const at = `/workspaces/${id}/activity`
    const { status, body } = await platform.request('GET', at)
    assert.equal(status, 200)
    assert.ok(body.activity.every((entry: { task_id?: string }) => entry.task_id === task.id))
    assert.deepEqual(body.activity.map(({ type }: { type: string }) => type).sort(), ['reply', 'status', 'status'])
    assert.equal((await platform.request('GET', `${at}?type=reply&limit=1`)).body.activity[0].text, 'hello')
    const noted = await platform.request('POST', at, { type: 'deployed', text: 'ü'.repeat(2048) })
    assert.deepEqual([noted.status, noted.body.seq > body.next], [201, true])
    const news = await platform.request('GET', `${at}?since=${body.next}`)
    assert.deepEqual(
      [news.body.activity.length, news.body.activity[0].by, news.body.next],
      [1, 'admin', noted.body.seq],
    )
    for (const note of [{ type: 'deployed', text: 'ü'.repeat(2049) }, { type: 'A b', text: 'x' }, { type: 'x' }]) {
      assert.equal((await platform.request('POST', at, note)).status, 400)
    }
    for (const query of ['since=-1', 'since=x', 'limit=0', 'limit=501']) {
      assert.equal((await platform.request('GET', `${at}?${query}`)).status, 400, query)
    }
    const database = new DatabaseSync(join(platform.dataDir, 'molecule.db'), { timeout: 5000 })
    database.exec('update workspace_load set pruned_seq = 2')
    database.close()
    const gone = await platform.request('GET', `${at}?since=1`)
    assert.deepEqual([gone.status, gone.body.error.code], [410, 'pruned'])
    assert.equal((await platform.request('GET', '/workspaces/ws_none/activity')).status, 404)
  }),
)

test(
  'PL-3 BK-8 a workspace whose program is installed later is online again after a turn that it answered',
  withPlatform(async (platform) => {
    const bin = join(platform.dataDir, 'late-claude')
    const made = await platform.request('POST', '/workspaces', {
      name: 'late',
      runtime: 'claude-code',
      max_attempts: 1,
      runtime_config: { bin, mode: 'oneshot', permission: 'allowed_tools' },
    })
    const { id, status, status_reason: reason } = made.body
    assert.deepEqual([status, /there is no program/.test(reason)], ['failed', true], reason)
    assert.equal((await platform.send(id, 'too early')).status.state, 'TASK_STATE_FAILED')
    // It answers, but it has no --version: only the turn shows that it works.
    const result = { type: 'result', subtype: 'success', is_error: false, result: 'here I am', session_id: 'x' }
    const script = `#!/bin/sh\ncase "$*" in *--version*) exit 1;; esac\ncat >/dev/null\necho '${JSON.stringify(result)}'\n`
    await writeFile(bin, script, { mode: 0o755 })
    assert.equal(replyText(await platform.send(id, 'and now?')), 'here I am')
    await waitUntil(async () => (await getWorkspace(platform, id)).status !== 'failed', 'the status recovers')
    assert.equal((await getWorkspace(platform, id)).status_reason ?? '', '')
  }),
)
