/** The registry routes that the bridge of an external workspace calls. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { createExternalWorkspace } from '../harness/bridge.ts'
import { getWorkspace, reasonText, sendWithoutWaiting, withPlatform } from '../harness/platform.ts'

/** Sends a request with the given token. */
async function callRegistry(url: string, token: string, body?: object) {
  const response = await fetch(url, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { Authorization: `Bearer ${token}` },
    ...(body && { body: JSON.stringify(body) }),
  })
  // biome-ignore lint/suspicious/noExplicitAny: tests read responses of every shape
  return { status: response.status, body: (await response.json()) as any }
}

test(
  'PL-2 creating an external workspace returns its token once and the connect command; deleting revokes it',
  withPlatform(async (platform) => {
    const { id, auth_token: token, connect, status } = await createExternalWorkspace(platform)
    assert.equal(status, 'offline')
    assert.equal(connect, `molecule connect ${id} --token ${token} --api-url ${platform.url}`)
    assert.equal('auth_token' in (await getWorkspace(platform, id)), false)
    const message = { messageId: 'm-1', role: 'ROLE_USER', parts: [{ text: 'for later' }] }
    const sent = await platform.rpc(id, 'SendMessage', { message, configuration: { returnImmediately: true } })
    assert.equal(sent.body.result.task.status.state, 'TASK_STATE_SUBMITTED')
    assert.match(reasonText(sent.body.result.task), /^waiting: the workspace is offline \(it has never connected\)$/)
    const beat = () => callRegistry(`${platform.url}/registry/heartbeat`, token, { workspace_id: id })
    assert.equal((await beat()).status, 200)
    assert.equal((await platform.request('DELETE', `/workspaces/${id}?confirm=Laptop`)).status, 200)
    assert.equal((await beat()).status, 401)
  }),
)

test(
  'PL-4 heartbeats keep a workspace online; errors make it degraded, 90 s of silence offline',
  withPlatform(async (platform) => {
    const { id, auth_token: token } = await createExternalWorkspace(platform)
    const other = await createExternalWorkspace(platform, { name: 'Other' })
    const post = (path: string, body: object) => callRegistry(`${platform.url}/registry/${path}`, token, body)
    const registered = await post('register', { workspace_id: id, runtime_state: 'ok' })
    assert.deepEqual([registered.status, registered.body.status], [200, 'online'])
    assert.equal(registered.body.heartbeat_seconds, 30)
    const report = { current_task: 'reading', active_tasks: 1, error_rate: 0.9, uptime_seconds: 12.5 }
    assert.equal((await post('heartbeat', { workspace_id: id, ...report })).body.status, 'degraded')
    const unwell = await getWorkspace(platform, id)
    assert.deepEqual(
      [unwell.status, unwell.status_reason, unwell.current_task],
      ['degraded', '90 % of its turns fail', 'reading'],
    )
    assert.equal((await post('heartbeat', { workspace_id: id, error_rate: 0, current_task: '' })).body.status, 'online')
    assert.equal((await getWorkspace(platform, id)).current_task, null)
    assert.equal((await post('heartbeat', { workspace_id: other.id })).status, 403)
    assert.equal((await post('heartbeat', { workspace_id: id, error_rate: 2 })).status, 400)
    assert.equal((await platform.request('POST', '/registry/heartbeat', { workspace_id: 'ws_none' })).status, 404)
    const database = new DatabaseSync(join(platform.dataDir, 'molecule.db'), { timeout: 5000 })
    database.exec('update presence set heard_at = heard_at - 91000')
    database.close()
    const silent = await getWorkspace(platform, id)
    assert.equal(silent.status, 'offline')
    assert.match(silent.status_reason, /no heartbeat for 9\d s/)
  }),
)

test(
  'PL-4 a workspace that sends heartbeats and takes no messages is degraded, with how long one has waited',
  withPlatform(async (platform) => {
    const { id, auth_token: token } = await createExternalWorkspace(platform)
    const beat = () => callRegistry(`${platform.url}/registry/heartbeat`, token, { workspace_id: id })
    await beat()
    const taskId = await sendWithoutWaiting(platform, id, 'is anybody there?')
    assert.equal((await getWorkspace(platform, id)).status, 'online')
    const database = new DatabaseSync(join(platform.dataDir, 'molecule.db'), { timeout: 5000 })
    database.exec('update conversations set ready_at = ready_at - 61000 where ready_at is not null')
    database.close()
    assert.equal((await beat()).body.status, 'degraded')
    assert.match((await getWorkspace(platform, id)).status_reason, /takes no messages: one has waited for 1m\d+s/)
    await platform.rpc(id, 'CancelTask', { id: taskId })
    assert.equal((await getWorkspace(platform, id)).status, 'online')
  }),
)

test(
  'PL-4 a workspace finds only its peers and their URLs',
  withPlatform(async (platform) => {
    const boss = await createExternalWorkspace(platform, { name: 'Boss' })
    const child = await createExternalWorkspace(platform, { name: 'Child', parent_id: boss.id })
    const sibling = await createExternalWorkspace(platform, { name: 'Sibling', parent_id: boss.id })
    const stranger = await createExternalWorkspace(platform, { name: 'Stranger' })
    const ask = (path: string, token = child.auth_token) => callRegistry(`${platform.url}/registry/${path}`, token)
    const { body } = await ask(`${child.id}/peers`)
    assert.deepEqual(body.peers.map(({ name }: { name: string }) => name).sort(), ['Boss', 'Sibling'])
    const found = await ask(`discover/${sibling.id}`)
    assert.equal(found.body.url, `${platform.url}/workspaces/${sibling.id}/a2a`)
    assert.deepEqual([found.body.name, found.body.status, found.body.parent_id], ['Sibling', 'offline', boss.id])
    assert.equal((await ask(`discover/${stranger.id}`)).status, 403)
    assert.equal((await ask(`${sibling.id}/peers`)).status, 403)
    assert.equal((await ask('discover/ws_none', platform.token)).status, 404)
    assert.equal((await ask('ws_none/peers', platform.token)).status, 404)
  }),
)
