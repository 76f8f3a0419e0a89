/** The environment of the processes that turns start, on the platform and on a bridge. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createExternalWorkspace, startBridge, temporaryHome } from '../harness/bridge.ts'
import { MOLECULE } from '../harness/command.ts'
import { type PlatformUnderTest, replyText, startPlatformFor } from '../harness/platform.ts'
import { prepareBridge } from '../harness/prepared-bridge.ts'

const OURS = { MOLECULE_ADMIN_TOKEN: 'the-admin-token-of-this-test', MOLECULE_DRAIN: '3s' }
const SECRETS = { ...OURS, DISCORD_BOT_TOKEN: 'discord-secret', TELEGRAM_BOT_TOKEN: 'telegram-secret' }

/** Prints the environment. The platform masks tokens in replies, so they are printed without their prefix. */
const PRINT_ENVIRONMENT = 'env | sed s/=mol_/=/'

const variables = (text: string | undefined): Record<string, string> =>
  Object.fromEntries((text ?? '').split('\n').map((line) => line.split(/=(.*)/s).slice(0, 2) as [string, string]))

async function ask(platform: PlatformUnderTest, token: string | undefined, path: string): Promise<number> {
  return (await fetch(platform.url + path, { headers: { Authorization: `Bearer ${token}` } })).status
}

/** Checks every rule of RT-12 for a child with pass_meta. */
async function assertMeta(platform: PlatformUnderTest, id: string, env: Record<string, string>): Promise<void> {
  const names = Object.keys(env).filter((name) => /^(MOLECULE|DISCORD|TELEGRAM|DATABASE)_/.test(name))
  const meta = ['CALLER_ID', 'MESSAGE_ID', 'METHOD', 'TASK_ID', 'TURN'].map((name) => `MOLECULE_${name}`)
  const access = ['MOLECULE_API_URL', 'MOLECULE_WORKSPACE_ID', 'MOLECULE_WORKSPACE_TOKEN']
  const files = ['MOLECULE_OUTBOX', 'MOLECULE_SYSTEM_PROMPT_FILE']
  assert.deepEqual(names.sort(), [...meta, ...access, ...files].sort())
  assert.equal(env['MOLECULE_WORKSPACE_ID'], id)
  assert.equal(env['MOLECULE_API_URL'], platform.url)
  assert.equal(env['PATH']?.split(':')[0], dirname(MOLECULE))
  const token = `mol_${env['MOLECULE_WORKSPACE_TOKEN']}`
  assert.equal(await ask(platform, token, `/registry/${id}/peers`), 200)
  assert.equal(await ask(platform, token, '/tokens'), 403)
}

async function assertNoMeta(platform: PlatformUnderTest, id: string): Promise<void> {
  const env = variables(replyText(await platform.send(id, 'x')))
  assert.deepEqual(
    Object.keys(env)
      .filter((name) => /^(MOLECULE|DISCORD|TELEGRAM)_/.test(name))
      .sort(),
    ['MOLECULE_OUTBOX', 'MOLECULE_TURN'],
  )
  assert.ok(!env['PATH']?.includes(dirname(MOLECULE)))
}

const withSecrets = (t: TestContext) => startPlatformFor(t, { env: SECRETS })

test('RT-12 with pass_meta a child of the platform gets ids, URL and token; without it, none of them', async (t) => {
  const platform = await withSecrets(t)
  const id = await platform.exec(PRINT_ENVIRONMENT, { runtime_config: { pass_meta: 'true' } })
  await assertMeta(platform, id, variables(replyText(await platform.send(id, 'x'))))
  await assertNoMeta(platform, await platform.exec('env'))
})

test("RT-12 a child of a bridge gets the same variables, and never the bridge's own token", async (t) => {
  const platform = await withSecrets(t)
  const workspace = await createExternalWorkspace(platform)
  const start = { url: platform.url, workspace, home: temporaryHome(t), cmd: PRINT_ENVIRONMENT }
  const meta = ['--backend-opt', 'pass_meta=true']
  const token = ['--token', workspace.auth_token]
  const env = { ...OURS, MOLECULE_WORKSPACE_TOKEN: workspace.auth_token }
  const bridge = await startBridge(t, { ...start, token, env, args: meta })
  const reply = replyText(await platform.send(workspace.id, 'x')) ?? ''
  await assertMeta(platform, workspace.id, variables(reply))
  for (const secret of [workspace.auth_token, OURS.MOLECULE_ADMIN_TOKEN])
    assert.ok(!reply.includes(secret.replace('mol_', '')))
  // By its name: a value of two letters may be in any token or path.
  assert.doesNotMatch(reply, /MOLECULE_DRAIN/)
  bridge.kill('SIGTERM')
  await bridge.ended
  await startBridge(t, { ...start, token, env })
  await assertNoMeta(platform, workspace.id)
})

const PRINT_USERS_VARIABLES = `
const own = Object.entries(process.env).filter(([name]) => /^(DATABASE_URL|PG|DISCORD_|SOCKET_|MOLECULE_)/.test(name))
const result = own.map(([name, value]) => name + '=' + value).join(';')
if (process.argv[2] === 'exec') console.log(result)
else require('node:readline').createInterface(process.stdin).on('line', (line) =>
  console.log(JSON.stringify({ jsonrpc: '2.0', id: JSON.parse(line).id, result })))
`

for (const backend of ['exec', 'stdio'])
  test(`RT-12 a handler of a bridge (${backend}) keeps the variables of its user, and gets none of ours`, async (t) => {
    const { platform, workspace, home } = await prepareBridge(t)
    writeFileSync(join(home, 'handler.cjs'), PRINT_USERS_VARIABLES)
    const own = {
      DATABASE_URL: 'postgres://mine/db',
      DISCORD_WEBHOOK: 'mine',
      PGHOST: 'db.mine',
      SOCKET_CHANNEL_TOKEN: 'm',
    }
    const env = { ...OURS, ...own, MOLECULE_WORKSPACE_TOKEN: workspace.auth_token }
    const cmd = `'${process.execPath}' '${home}/handler.cjs' ${backend}`
    const args = ['--backend', backend, '--backend-opt', `cmd=${cmd}`]
    await startBridge(t, { url: platform.url, workspace, home, token: [], env, args })
    const reply = replyText(await platform.send(workspace.id, 'x')) ?? ''
    const printed = reply
      .trim()
      .split(';')
      .filter((one) => !/^MOLECULE_(TURN|OUTBOX)=/.test(one))
    assert.deepEqual(
      printed.sort(),
      Object.entries(own).map(([name, value]) => `${name}=${value}`),
    )
  })

test('RT-12 a child finds a2a and molecule, acts as its workspace, and its token ends with the workspace', async (t) => {
  const platform = await startPlatformFor(t)
  const wanted = { name: 'asker', runtime_config: { pass_meta: 'true', timeout: '60s' } }
  const id = await platform.exec(
    'cat >/dev/null; command -v molecule; a2a peers; echo ${MOLECULE_WORKSPACE_TOKEN#mol_}',
    wanted,
  )
  await platform.exec('cat', { name: 'Colleague' })
  const reply = replyText(await platform.send(id, 'who is there?')) ?? ''
  assert.match(reply, /\/bin\/molecule\n/)
  assert.match(reply, /^Colleague .*online/m)
  const token = `mol_${reply.trim().split('\n').at(-1)}`
  const again = replyText(await platform.send(id, 'x', { contextId: 'another' })) ?? ''
  assert.notEqual(`mol_${again.trim().split('\n').at(-1)}`, token)
  const [mac = ''] = token.match(/[\w-]{43}$/) ?? []
  const forged = token.replace(mac, mac.split('').reverse().join(''))
  assert.equal(await ask(platform, forged, '/workspaces'), 401)
  assert.equal(await ask(platform, token, `/workspaces/${id}`), 200)
  assert.equal((await platform.request('DELETE', `/workspaces/${id}?confirm=asker`)).status, 200)
  assert.equal(await ask(platform, token, `/workspaces/${id}`), 401)
})
