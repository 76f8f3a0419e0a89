/** The official checks of MCP servers against the MCP server of a workspace: conformance scenarios and the inspector. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { MOLECULE } from '../harness/command.ts'
import { type PlatformUnderTest, startPlatform } from '../harness/platform.ts'
import { mcpCheck } from './install-clients.ts'

/** The other scenarios need tools, prompts and resources of a server that is made for them. */
const SCENARIOS = ['server-initialize', 'ping', 'tools-list', 'server-sse-multiple-streams', 'dns-rebinding-protection']

const home = mkdtempSync(join(tmpdir(), 'molecule-mcp-checks-'))
let platform: PlatformUnderTest
let url: string

before(async () => {
  platform = await startPlatform()
  const id = await platform.exec('cat', { name: 'asker' })
  await platform.exec('printf "written: "; cat', { name: 'writer' })
  url = `${platform.url}/workspaces/${id}/mcp`
})
after(async () => {
  await platform?.dispose()
  rmSync(home, { recursive: true, force: true })
})

async function run(program: string, args: readonly string[]): Promise<string> {
  const env = { PATH: process.env['PATH'] ?? '', HOME: home }
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const [printed, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  assert.equal(code, 0, `${printed}\n${errors}`)
  return printed
}

/** The conformance program sends no token, so this adds the token and changes nothing else. */
async function startTokenProxy() {
  const server = createServer((incoming, response) => {
    const headers = { ...incoming.headers, authorization: `Bearer ${platform.token}` }
    const forwarded = request(url, { method: incoming.method ?? 'GET', headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers)
      answer.pipe(response)
    })
    forwarded.on('error', () => response.destroy())
    incoming.pipe(forwarded)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    stop() {
      server.close()
      server.closeAllConnections()
    },
  }
}

test('TW-1 the server passes the scenarios of the conformance suite that apply to it', async (t) => {
  const proxy = await startTokenProxy()
  t.after(proxy.stop)
  for (const scenario of SCENARIOS) {
    await run(mcpCheck('conformance'), ['server', '--url', proxy.address, '--scenario', scenario])
  }
})

for (const transport of ['http', 'stdio'] as const) {
  test(`TW-1 the inspector lists and calls the tools over ${transport}`, async () => {
    const target =
      transport === 'http'
        ? ['--cli', url, '--transport', 'http', '--header', `Authorization: Bearer ${platform.token}`]
        : [
            ...['--cli', MOLECULE, 'mcp', '--workspace', 'asker', '-e', `MOLECULE_API_URL=${platform.url}`],
            ...['-e', `MOLECULE_ADMIN_TOKEN=${platform.token}`],
          ]
    const listed = await run(mcpCheck('mcp-inspector'), [...target, '--method', 'tools/list'])
    assert.match(listed, /"delegate_task"/)
    const given = ['--tool-name', 'delegate_task', '--tool-arg', 'workspace_id=writer', '--tool-arg', 'task=a poem']
    const called = await run(mcpCheck('mcp-inspector'), [...target, '--method', 'tools/call', ...given])
    assert.match(called, /written: a poem/)
  })
}
