/** `molecule login` and `molecule open` against a real platform: links, the browser, and what a spent link answers. */
import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { runCommand } from '../harness/command.ts'
import { type PlatformUnderTest, startPlatform } from '../harness/platform.ts'
import { temporaryDir } from '../harness/process-harness.ts'
import { waitUntil } from '../harness/wait.ts'

const LINK = /http:\/\/\S+\/#(\S+)/

describe('molecule login and open', () => {
  let platform: PlatformUnderTest
  before(async () => {
    platform = await startPlatform()
  })
  after(() => platform.dispose())

  const molecule = async (args: readonly string[], env: Record<string, string> = {}) => {
    const noScreen = { DISPLAY: '', WAYLAND_DISPLAY: '', WSL_DISTRO_NAME: '', SSH_CONNECTION: '' }
    const result = await runCommand(args, { env: { MOLECULE_HOME: platform.dataDir, ...noScreen, ...env } })
    assert.equal(result.code, 0, result.err)
    assert.ok(!(result.out + result.err).includes(platform.token), 'the admin token is not printed')
    return result.out
  }
  const logIn = (code: string) => fetch(`${platform.url}/login`, { method: 'POST', body: JSON.stringify({ code }) })
  const codeOf = (out: string): string => LINK.exec(out)?.[1] ?? assert.fail(out)

  test('CL-4 login prints a new link at any time; it logs one browser in, once', async () => {
    const out = await molecule(['login'])
    assert.match(out, /^http:\/\/127\.0\.0\.1:\d+\/#\S+\nIt works once, within 10 min\.\n$/)
    assert.notEqual(codeOf(out), codeOf(await molecule(['login'])))
    const answer = await logIn(codeOf(out))
    assert.equal(answer.status, 204)
    const cookie = answer.headers.getSetCookie()[0]?.split(';')[0] ?? ''
    assert.equal((await fetch(`${platform.url}/workspaces`, { headers: { cookie } })).status, 200)
    const again = await logIn(codeOf(out))
    assert.equal(again.status, 401)
    assert.match(await again.text(), /already used or has expired; \\"molecule open\\" makes a new one/)
  })

  test('CL-4 --role and --name make the session of another person, which the list shows', async () => {
    const answer = await logIn(codeOf(await molecule(['login', '--role', 'viewer', '--name', 'Ana'])))
    const cookie = answer.headers.getSetCookie()[0]?.split(';')[0] ?? ''
    assert.equal((await fetch(`${platform.url}/workspaces`, { headers: { cookie } })).status, 200)
    assert.equal((await fetch(`${platform.url}/tokens`, { headers: { cookie } })).status, 403)
    const { tokens } = (await platform.request('GET', '/tokens')).body
    assert.ok(tokens.some((token: Record<string, string>) => token['name'] === 'Ana' && token['role'] === 'viewer'))
  })

  test('CL-4 open starts the browser on a file that only its owner can read, and prints the link too', async (t) => {
    const folder = temporaryDir(t)
    const record = join(folder, 'opened')
    mkdirSync(join(folder, 'bin'))
    writeFileSync(
      join(folder, 'bin/xdg-open'),
      `#!/bin/sh\nprintf '%s' "$*" >'${record}.new'; mv '${record}.new' '${record}'\n`,
    )
    chmodSync(join(folder, 'bin/xdg-open'), 0o755)
    const screen = { DISPLAY: ':9', PATH: `${folder}/bin:${process.env['PATH']}` }
    const out = await molecule(['open'], screen)
    assert.match(out, /^A browser opens\. If it shows nothing, use this link\./)
    await waitUntil(() => existsSync(record), 'the browser is started')
    const given = readFileSync(record, 'utf8')
    assert.equal(given, `file://${platform.dataDir}/open.html`)
    const page = join(platform.dataDir, 'open.html')
    assert.equal(statSync(page).mode & 0o077, 0)
    assert.equal(codeOf(readFileSync(page, 'utf8').replaceAll('"', ' ')), codeOf(out))
    assert.equal((await logIn(codeOf(out))).status, 204)
    const printed = await molecule(['open', '--print'], screen)
    assert.match(printed, /^http:/)
  })

  test('CL-4 without a screen, and over SSH, open prints the link', async () => {
    assert.match(await molecule(['open']), /^http:\S+\nIt works once/)
    assert.match(await molecule(['open'], { DISPLAY: ':9', SSH_CONNECTION: '10.0.0.1 1 10.0.0.2 22' }), /^http:/)
    const { url, expires_in: seconds, opened } = JSON.parse(await molecule(['open', '-o', 'json']))
    assert.deepEqual([LINK.test(url), seconds, opened], [true, 600, false])
  })

  test('CL-4 a token of an agent gets no login link', async () => {
    const id = await platform.exec('cat', { name: 'agent' })
    const { body } = await platform.request('POST', '/tokens', { name: 'w', role: 'workspace', workspace_id: id })
    const env = { MOLECULE_API_URL: platform.url, MOLECULE_WORKSPACE_TOKEN: body.token }
    const { code, err } = await runCommand(['login'], { env })
    assert.equal(code, 1)
    assert.match(err, /token\.handle needs admin/)
  })
})
