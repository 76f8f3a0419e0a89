/** Adapters in the data folder: on a real platform, on a bridge, behind the gateway, in `molecule doctor`, and as chat channels. */
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { startSocketService } from '../fakes/socket-service.ts'
import { createExternalWorkspace, launchBridge, startBridge, temporaryHome } from '../harness/bridge.ts'
import { runCommand, startCommand } from '../harness/command.ts'
import { serve } from '../harness/loopback-server.ts'
import { replyText, startPlatformFor } from '../harness/platform.ts'
import { prepareBridge } from '../harness/prepared-bridge.ts'
import { temporaryDir } from '../harness/process-harness.ts'
import { waitUntil } from '../harness/wait.ts'

const EXAMPLE = join(import.meta.dirname, '..', '..', 'docs', 'backends', 'example-adapter')

/** A data folder with the example, and with a folder that has no package.json. */
function folderWithExample(t: TestContext): string {
  const dataDir = temporaryDir(t)
  cpSync(EXAMPLE, join(dataDir, 'adapters', 'parrot'), { recursive: true })
  mkdirSync(join(dataDir, 'adapters', 'broken'))
  return dataDir
}

/** An adapter that answers with what its package `left-pad` gives it. */
function addPadding(dataDir: string, dependencies: Record<string, string> | undefined): string {
  const folder = join(dataDir, 'adapters', 'padding')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module', main: 'padding.js', dependencies }))
  writeFileSync(
    join(folder, 'padding.js'),
    `import pad from 'left-pad'
    async function* run({ request }) {
      yield { type: 'done', parts: [{ text: pad(request.parts[0].text) }], finality: 'completed' }
    }
    export const backend = {
      name: 'padding', summary: 'pads', options: {}, reportsTools: false, isFree: true,
      create: () => ({ name: 'padding', validate: async () => ({ ok: true }), run, close: async () => undefined }),
    }`,
  )
  return folder
}

/** An adapter without a paid model that answers with what it has got beside the message. */
function addTeller(dataDir: string, name: string): void {
  const folder = join(dataDir, 'adapters', name)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module', main: 'teller.js' }))
  writeFileSync(
    join(folder, 'teller.js'),
    `async function* run({ systemPrompt, recalled, history = [] }) {
      const text = JSON.stringify({ prompt: systemPrompt, recalled, messages: history.length })
      yield { type: 'done', parts: [{ text }], finality: 'completed' }
    }
    export const backend = {
      name: '${name}', summary: 'tells', options: {}, reportsTools: false, isFree: true, usesHistory: true,
      create: () => ({ name: '${name}', validate: async () => ({ ok: true }), run, close: async () => undefined }),
    }`,
  )
}

/** A package on this disk, so that npm needs no registry. */
function addPackage(dataDir: string, script = ''): string {
  const folder = join(dataDir, 'packages', 'left-pad')
  mkdirSync(folder, { recursive: true })
  const scripts = { preinstall: script, install: script, postinstall: script, prepare: script }
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({ name: 'left-pad', version: '1.0.0', type: 'module', main: 'pad.js', scripts }),
  )
  writeFileSync(join(folder, 'pad.js'), 'export default (text) => `.....${text}`')
  return `file:${folder}`
}

const doctor = async (home: string) => (await runCommand(['doctor'], { env: { MOLECULE_HOME: home } })).out

test('RT-10 an adapter folder becomes a runtime at start; a broken adapter is reported, skipped, and BROKEN in doctor', async (t) => {
  const dataDir = folderWithExample(t)
  assert.match(await doctor(dataDir), /BROKEN +adapters: broken +it cannot be used: it has no package\.json/)
  const platform = await startPlatformFor(t, { dataDir })
  assert.match(platform.output(), /adapter \\?"broken\\?" is skipped: it has no package.json/)
  const { body } = await platform.request('POST', '/workspaces', { name: 'Polly', runtime: 'parrot' })
  const task = await platform.send(body.id, 'hello there')
  assert.equal(task.artifacts?.[0]?.parts[0]?.text, 'hello there')
  const unknown = await platform.request('POST', '/workspaces', { name: 'x', runtime: 'clippy' })
  assert.match(JSON.stringify(unknown.body), /unknown backend .*known: .*parrot/)
  const broken = await platform.request('POST', '/workspaces', { name: 'x', runtime: 'broken' })
  assert.match(broken.body.error.message, /the adapter "broken" could not be loaded: it has no package\.json/)
  const found = await doctor(dataDir)
  assert.match(found, /BROKEN +adapters: broken +it cannot be used: it has no package\.json/)
  assert.match(found, /ok +adapters: parrot +sha256:/)
})

test('RT-10 doctor says why the last start could not use an adapter, and what its own probe finds', async (t) => {
  const dataDir = temporaryDir(t)
  const add = (name: string, more: string, close = '') => {
    const folder = join(dataDir, 'adapters', name)
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module', main: 'a.js' }))
    writeFileSync(
      join(folder, 'a.js'),
      `class Agent {
        name = '${name}'
        drifts = [{ missing: 'option --talk missing' }]
        async validate() { return { ok: true } }
        async *run() { yield { type: 'done', parts: [{ text: 'x' }], finality: 'completed' } }
        async probe() { return this.drifts }
        async close() { ${close} }
      }
      export const backend = { name: '${name}', summary: 's', options: {}, reportsTools: false, create: () => new Agent() }
      ${more}`,
    )
  }
  add('unlicensed', "export const setup = () => { throw new Error('no licence') }")
  add('drifted', '')
  add('sulky', '', "throw new Error('no end')")
  const platform = await startPlatformFor(t, { dataDir })
  const workspace = await platform.request('POST', '/workspaces', { name: 'x', runtime: 'unlicensed' })
  assert.match(workspace.body.error.message, /the adapter "unlicensed" could not be loaded: no licence/)
  const found = await doctor(dataDir)
  assert.match(found, /BROKEN +adapters: unlicensed +it cannot be used: no licence -> correct it/)
  for (const name of ['drifted', 'sulky'])
    assert.match(found, new RegExp(`BROKEN +adapters: ${name} +option --talk missing, its turns fail`))
  const sulky = await platform.request('POST', '/workspaces', { name: 'y', runtime: 'sulky' })
  assert.equal(replyText(await platform.send(sulky.body.id, 'hi')), 'x')
  // Closes the backend of the turn.
  assert.equal((await platform.request('POST', `/workspaces/${sulky.body.id}/restart`)).status, 200)
  assert.equal(replyText(await platform.send(sulky.body.id, 'hi')), 'x')
})

test('RT-10 packages that an adapter needs are installed at start, without running scripts of theirs', async (t) => {
  const dataDir = temporaryDir(t)
  const marker = join(dataDir, 'script-ran')
  addPadding(dataDir, { 'left-pad': addPackage(dataDir, `touch ${marker}`) })
  const start = async () => {
    const platform = await startPlatformFor(t, { dataDir })
    const { body } = await platform.request('POST', '/workspaces', { name: 'Pad', runtime: 'padding' })
    assert.equal(replyText(await platform.send(body.id, 'hi')), '.....hi')
    await platform.stop('SIGTERM')
    return platform.output()
  }
  assert.match(
    await start(),
    /the adapter \\?"padding\\?" needs the package left-pad, which is not installed; npm installs/,
  )
  assert.throws(() => cpSync(marker, `${marker}-2`), /ENOENT/)
  const again = await start()
  assert.doesNotMatch(again, /npm installs|has changed/)
  assert.match(await doctor(dataDir), /ok +adapters: padding/)
})

test('RT-10 where npm cannot install a package, the sentence names the package, the folder and the command', async (t) => {
  const dataDir = temporaryDir(t)
  const folder = addPadding(dataDir, { 'left-pad': 'file:../../not-there.tgz' })
  const platform = await startPlatformFor(t, { dataDir })
  const advice = `it needs the package left-pad, which is not installed; run: cd ${folder} && npm install`
  assert.ok(
    platform.output().replaceAll('\\"', '"').includes(`adapter "padding" is skipped: ${advice}`),
    platform.output(),
  )
  assert.match(platform.output(), /npm failed: .*adapter \\?"padding\\?" lacks its packages/)
  assert.ok((await doctor(dataDir)).includes(advice))
})

test('RT-10 a package that package.json does not list is named with the command that adds it', async (t) => {
  const dataDir = temporaryDir(t)
  const folder = addPadding(dataDir, undefined)
  const platform = await startPlatformFor(t, { dataDir })
  const advice = `it imports the package left-pad, which is not in its package.json; run: cd ${folder} && npm install left-pad`
  assert.ok(platform.output().includes(advice), platform.output())
})

test('RT-10 CN-1 BK-8 an adapter runs on a bridge, an unknown name lists it, and a broken one says why', async (t) => {
  const { platform, workspace, home } = await prepareBridge(t)
  const start = { url: platform.url, workspace, home }
  cpSync(EXAMPLE, join(home, 'adapters', 'parrot'), { recursive: true })
  addPadding(home, { 'left-pad': addPackage(home) })
  const unknown = launchBridge(t, { ...start, args: ['--backend', 'clippy'] })
  assert.equal(await unknown.ended, 2)
  assert.match(unknown.output(), /unknown backend "clippy"; valid: .*codex, .*padding, parrot/)
  mkdirSync(join(home, 'adapters', 'broken'))
  const broken = launchBridge(t, { ...start, args: ['--backend', 'broken'] })
  assert.equal(await broken.ended, 1)
  assert.match(broken.output(), /error: the adapter "broken" could not be loaded: it has no package\.json/)
  const bridge = await startBridge(t, { ...start, args: ['--backend', 'padding'] })
  assert.equal(replyText(await platform.send(workspace.id, 'hello')), '.....hello')
  bridge.kill('SIGTERM')
  await bridge.ended
  const moody = ['--backend', 'parrot', '--backend-opt', 'colour=red']
  const second = await startBridge(t, { ...start, args: moody })
  assert.match(second.output(), /warning: the backend parrot has no option "colour"/)
  assert.equal(replyText(await platform.send(workspace.id, 'again')), 'again')
})

test('RT-10 RT-1 an adapter gets system prompt, memories and history, on the platform and on a bridge that alone has it', async (t) => {
  const dataDir = temporaryDir(t)
  const home = temporaryHome(t)
  for (const folder of [dataDir, home]) addTeller(folder, folder === home ? 'far' : 'near')
  const platform = await startPlatformFor(t, { dataDir })
  const near = await platform.request('POST', '/workspaces', { name: 'Near', runtime: 'near', role: 'Tells' })
  const far = await createExternalWorkspace(platform, { role: 'Tells' })
  await startBridge(t, { url: platform.url, workspace: far, home, args: ['--backend', 'far'] })
  for (const id of [near.body.id, far.id]) {
    const put = await fetch(`${platform.url}/workspaces/${id}/files/system-prompt.md`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${platform.token}` },
      body: 'You are short.',
    })
    assert.ok(put.ok, await put.text())
    await platform.request('POST', `/workspaces/${id}/memories`, { text: 'the tea is green' })
    const ask = async () => JSON.parse(replyText(await platform.send(id, 'tea?', { contextId: 'c' })) ?? '')
    const first = await ask()
    assert.deepEqual([first.prompt, first.messages], ['You are short.\n\nYour role: Tells', 0])
    assert.match(first.recalled, /the tea is green/)
    assert.equal((await ask()).messages, 2)
  }
})

test('RT-10 GW-1 an adapter answers behind the gateway; an unknown name ends it and lists the adapters', async (t) => {
  const service = await startSocketService()
  t.after(() => service.close())
  const home = folderWithExample(t)
  const env = {
    MOLECULE_HOME: home,
    SOCKET_API_URL: service.apiUrl,
    SOCKET_CHANNEL_TOKEN: service.token,
    WORKING_DIR: home,
    SOCKET_ALLOWED_USERS: 'ada',
    ALLOWED_TOOLS: 'shell',
  }
  const unknown = await runCommand(['gateway'], { env: { ...env, AGENT_BACKEND: 'clippy' } })
  assert.equal(unknown.code, 1)
  assert.match(unknown.err, /unknown backend "clippy"; valid: .*parrot/)
  const broken = await runCommand(['gateway'], { env: { ...env, AGENT_BACKEND: 'broken' } })
  assert.equal(broken.code, 1)
  assert.match(broken.err, /error: the adapter "broken" could not be loaded: it has no package\.json/)
  const command = startCommand(t, ['gateway'], { env: { ...env, AGENT_BACKEND: 'parrot' } })
  await command.waitForOutput(/parrot answers/)
  await command.waitForErrors(/the backend parrot does not support ALLOWED_TOOLS/)
  const place = service.newPlace('direct')
  service.say({ place, author: { id: 'ada', name: 'Ada', isBot: false }, text: 'hello' })
  await waitUntil(() => service.written(place).length === 1)
  assert.equal(service.written(place)[0]?.text, 'hello')
})

const CHANNEL_EXAMPLE = join(import.meta.dirname, '..', '..', 'docs', 'doors', 'example-channel')
const PAGER_TOKEN = 'pager-token-1234'
const SIGNING_SECRET = 'pager-secret-5678'

const pagerSignature = (body: string) => createHmac('sha256', SIGNING_SECRET).update(body).digest('hex')

/** The service of the documented example, with the pages that it was asked to show. */
async function startPager(t: TestContext) {
  const pages: Record<string, string>[] = []
  const { url } = await serve(t, async (request, response) => {
    const body = await new Response(request as never).text()
    if (body !== '') pages.push(JSON.parse(body))
    response.statusCode = request.headers.authorization === `Bearer ${PAGER_TOKEN}` ? 200 : 401
    response.end(JSON.stringify({ name: 'pager-bot', id: String(pages.length) }))
  })
  return { url, pages }
}

const folderWithPager = (t: TestContext): string => {
  const dataDir = temporaryDir(t)
  cpSync(CHANNEL_EXAMPLE, join(dataDir, 'adapters', 'pager'), { recursive: true })
  return dataDir
}

test('GW-18 RT-10 a kind of channel from the adapters folder is added with its secret and its setting, and answers a webhook', async (t) => {
  const dataDir = folderWithPager(t)
  const service = await startPager(t)
  const platform = await startPlatformFor(t, { dataDir })
  await platform.exec('cat', { name: 'parrot' })
  const add = (variables: Record<string, string>) =>
    runCommand(
      ['channel', 'add', 'pager', '--service-url', service.url, '--workspace', 'parrot', '--allow-people', 'ada'],
      { env: { MOLECULE_HOME: dataDir, ...variables } },
    )
  const named = await add({ PAGER_TOKEN })
  assert.match(
    named.err,
    /a pager channel needs the setting "signing_secret" \(PAGER_SIGNING_SECRET\): It is on the page/,
  )
  const env = { PAGER_TOKEN, PAGER_SIGNING_SECRET: SIGNING_SECRET, PAGER_SENDER: 'Mo' }
  const wrong = await add({ ...env, PAGER_TOKEN: 'another-token-99' })
  assert.match(wrong.err, /error: The pager refuses the token: copy it again\./)
  const added = await add(env)
  assert.match(added.out, /added pager: the bot pager-bot\n {2}Let pager-bot call/)

  const webhook = async (body: string, { url } = platform, signature = pagerSignature(body)) => {
    const headers = { 'x-pager-signature': signature }
    const response = await fetch(`${url}/channels/pager/webhook`, { method: 'POST', headers, body })
    const policy = response.headers.get('content-security-policy')
    return { status: response.status, text: await response.text(), policy }
  }
  const message = (id: string) => JSON.stringify({ id, from: 'ada', text: `hello ${id}` })
  await waitUntil(async () => (await webhook(message('1'))).status === 200, 'the channel is connected')
  assert.deepEqual(await webhook(message('2'), platform, 'ff'), {
    status: 401,
    text: 'wrong signature',
    policy: "default-src 'none'; sandbox",
  })
  // A copy of a call is answered once.
  assert.equal((await webhook(message('1'))).text, 'taken')
  assert.equal((await webhook(message('3'))).text, 'taken')
  const what = () => JSON.stringify(service.pages)
  await waitUntil(() => service.pages.length === 2, what)
  assert.deepEqual(service.pages, [
    { place: 'ada', text: 'hello 1', sender: 'Mo' },
    { place: 'ada', text: 'hello 3', sender: 'Mo' },
  ])
  assert.equal((await webhook('x'.repeat(1024 * 1024 + 1))).status, 413)

  const listed = await platform.request('GET', '/channels')
  assert.deepEqual(listed.body.channels[0].settings, { sender: 'Mo' })
  assert.equal(await platform.stop(), 0)
  // The secret is stored: after a restart calls are verified as before.
  const again = await startPlatformFor(t, { dataDir })
  await waitUntil(async () => (await webhook(message('4'), again)).status === 200, 'the channel is connected')
  await waitUntil(() => service.pages.length === 3, what)
  for (const output of [platform.output(), again.output(), added.out, JSON.stringify(listed.body)])
    for (const secret of [PAGER_TOKEN, SIGNING_SECRET]) assert.ok(!output.includes(secret))
})

test('GW-18 RT-10 a broken kind of an adapter and a taken one are skipped by name; a channel without webhooks has no such route', async (t) => {
  const dataDir = folderWithPager(t)
  const write = (name: string, channel: string) => {
    mkdirSync(join(dataDir, 'adapters', name))
    writeFileSync(join(dataDir, 'adapters', name, 'package.json'), JSON.stringify({ type: 'module', main: 'a.js' }))
    writeFileSync(join(dataDir, 'adapters', name, 'a.js'), `export const channel = ${channel}`)
  }
  const kind = (name: string, more = '') =>
    `{ kind: '${name}', tokenVariable: 'A_TOKEN', tokenSteps: [], check() {}, open() {}, ${more} }`
  write('no-open', "{ kind: 'no-open', tokenVariable: 'A_TOKEN', tokenSteps: [], check() {} }")
  write('no-settings', kind('no-settings', "settings: [{ name: 'Not This' }]"))
  write('other-discord', kind('discord'))
  write('z-pager', kind('pager'))
  const platform = await startPlatformFor(t, { dataDir })
  for (const reason of [
    /adapter \\?"no-open\\?" is skipped: the channel \\?"no-open\\?" needs open: a function/,
    /adapter \\?"no-settings\\?" is skipped: the channel .* has a setting that cannot be used/,
    /adapter \\?"other-discord\\?" is skipped: the name \\?"discord\\?" is taken/,
    /adapter \\?"z-pager\\?" is skipped: the name \\?"pager\\?" is taken/,
  ])
    assert.match(platform.output(), reason)
  const add = async (name: string) =>
    (await runCommand(['channel', 'add', name], { env: { MOLECULE_HOME: dataDir }, input: 'token' })).err
  assert.match(await add('page'), /there is no kind of channel "page"; the kinds are discord, .*pager.*, telegram/)
  assert.match(await add('no-open'), /the adapter "no-open" could not be loaded: the channel "no-open" needs open/)
  assert.match(await doctor(dataDir), /BROKEN +adapters: no-open [\s\S]*ok +adapters: pager/)

  const socket = await startSocketService()
  t.after(() => socket.close())
  const added = await platform.request('POST', '/channels', {
    kind: 'socket',
    token: socket.token,
    api_url: socket.apiUrl,
  })
  assert.equal(added.status, 201)
  await waitUntil(() => socket.isConnected())
  for (const name of ['socket', 'pager'])
    assert.equal((await platform.request('POST', `/channels/${name}/webhook`, {})).status, 404)
})
