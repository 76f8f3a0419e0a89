/** Secrets in the settings of a workspace, on a real platform: no answer, no export and no log shows them. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { runCommand } from '../harness/command.ts'
import { withPlatform } from '../harness/platform.ts'

const SECRET = 'x1y2z3-not-for-members'
const SERVERS = JSON.stringify({
  git: { command: 'npx', args: ['server', '--token', SECRET, `--api-key=${SECRET}`], env: { GITHUB_TOKEN: SECRET } },
})

test(
  'PL-12 RE-9 nobody reads a secret inside mcp_servers, and the mask that comes back keeps it',
  withPlatform(async (platform) => {
    const id = await platform.exec(`cat; : --password ${SECRET}`, { runtime_config: { mcp_servers: SERVERS } })
    const path = `/workspaces/${id}`
    const { body: token } = await platform.request('POST', '/tokens', { name: 'm', role: 'member' })
    const asMember = await fetch(platform.url + path, { headers: { authorization: `Bearer ${token.token}` } })
    assert.equal(asMember.status, 200)
    const shown = await asMember.text()
    assert.equal(shown.includes(SECRET), false, shown)
    assert.match(shown, /GITHUB_TOKEN/)

    const { runtime_config } = (await platform.request('GET', path)).body
    assert.equal((await platform.request('PATCH', path, { runtime_config })).status, 200)
    const changed = { ...runtime_config, mcp_servers: runtime_config.mcp_servers.replace('npx', 'node') }
    const refused = await platform.request('PATCH', path, { runtime_config: changed })
    assert.equal(refused.status, 400)
    assert.match(refused.body.error.message, /mcp_servers holds a secret/)
    const file = await fetch(`${platform.url + path}/files/config.yaml`, {
      headers: { authorization: `Bearer ${platform.token}` },
    })
    assert.equal((await file.text()).split(SECRET).length - 1, 4, 'the owner still has all four')

    const env = { MOLECULE_HOME: platform.dataDir }
    const exported = await runCommand(['export'], { env })
    assert.equal(exported.code, 0, exported.err)
    assert.equal((exported.out + exported.err).includes(SECRET), false)
    assert.match(exported.out, /not written, because it may be secret: .*mcp_servers/)
    const log = await readFile(join(platform.dataDir, 'molecule.log'), 'utf8')
    assert.equal(log.includes(SECRET), false)
  }),
)
