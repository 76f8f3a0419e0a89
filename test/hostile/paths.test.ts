/** A viewer, a program or a peer must not learn where the files of the platform are. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connectSocket } from '../harness/clients/socket-client.ts'
import { getWorkspace, withPlatform } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

test(
  'RT-7 RE-9 only an owner reads a path in the reason why a workspace failed',
  withPlatform(async (platform) => {
    const bin = '/opt/a-secret-place/of-the-owner/claude'
    const wanted = { name: 'broken', runtime: 'claude-code', runtime_config: { bin } }
    const { id } = (await platform.request('POST', '/workspaces', wanted)).body
    await waitUntil(async () => (await getWorkspace(platform, id)).status === 'failed', 'the workspace fails')
    assert.match((await getWorkspace(platform, id)).status_reason, /\/opt\/a-secret-place\/of-the-owner\/claude/)
    const peer = (await platform.request('POST', '/workspaces', { name: 'peer', runtime: 'external' })).body
    const viewer = (await platform.request('POST', '/tokens', { name: 'guest', role: 'viewer' })).body.token
    const caller = await platform.request('POST', '/tokens', { name: 'program', role: 'caller', workspaces: [id] })
    const paths = [
      `/workspaces/${id}`,
      '/workspaces',
      `/registry/discover/${id}`,
      `/registry/${peer.id}/peers`,
      `/workspaces/${id}/a2a/.well-known/agent-card.json`,
      `/workspaces/${id}/activity`,
    ]
    const seen: string[] = []
    for (const token of [viewer, caller.body.token, peer.auth_token]) {
      for (const path of paths) {
        const response = await fetch(platform.url + path, { headers: { Authorization: `Bearer ${token}` } })
        const text = await response.text()
        if (/"failed"/.test(text)) seen.push(path)
        assert.ok(!text.includes('a-secret-place'), `${path}: ${text.slice(0, 500)}`)
      }
    }
    assert.ok(seen.length >= 4, `the failure itself is shown: ${seen}`)
    const options = { headers: { authorization: `Bearer ${viewer}` } }
    const { socket, messages, send } = await connectSocket(platform.url, options)
    send({ subscribe: {}, others: 'beginning' })
    await waitUntil(
      () => JSON.stringify(messages).includes('"failed"'),
      () => JSON.stringify(messages),
    )
    assert.ok(!JSON.stringify(messages).includes('a-secret-place'))
    socket.terminate()
  }),
)
