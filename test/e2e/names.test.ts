/** URLs with the name of a workspace in place of its id, over HTTP and A2A, against a real platform. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { runCommand } from '../harness/command.ts'
import { type PlatformUnderTest, startPlatform } from '../harness/platform.ts'

describe('names in URLs', () => {
  let platform: PlatformUnderTest
  before(async () => {
    platform = await startPlatform()
  })
  after(() => platform.dispose())

  const as = (token: string, path: string, init: RequestInit = {}) =>
    fetch(`${platform.url}${path}`, { ...init, headers: { Authorization: `Bearer ${token}` } })
  const message = (id: string) => ({ messageId: id, role: 'ROLE_USER', parts: [{ text: `hello ${id}` }] })

  test('CL-7 every route of a workspace takes its name', async () => {
    const id = await platform.exec('cat', { name: 'named' })
    assert.equal((await platform.request('GET', '/workspaces/named')).body.id, id)
    assert.equal((await platform.request('PATCH', '/workspaces/named', { role: 'Answers' })).body.role, 'Answers')
    assert.equal((await platform.request('POST', '/workspaces/named/pause')).body.status, 'paused')
    assert.equal((await platform.request('POST', '/workspaces/named/resume')).body.status, 'online')
    assert.equal((await platform.request('GET', '/registry/discover/named')).body.id, id)
    assert.equal((await platform.request('GET', '/registry/named/peers')).status, 200)
    const sent = await platform.send('named', 'hello')
    assert.equal(sent.artifacts?.[0]?.parts[0]?.text, 'hello')
    const { activity } = (await platform.request('GET', '/workspaces/named/activity')).body
    assert.ok(activity.some((entry: { task_id?: string }) => entry.task_id === sent.id))
    const rest = await as(platform.token, '/workspaces/named/a2a/message:send', {
      method: 'POST',
      body: JSON.stringify({ message: message('rest') }),
    })
    assert.equal(rest.status, 200, await rest.clone().text())
    assert.equal((await platform.request('GET', `/workspaces/named/a2a/tasks/${sent.id}`)).body.id, sent.id)
    const gone = await platform.request('DELETE', '/workspaces/named?confirm=named')
    assert.deepEqual(gone.body, { deleted: [id] })
    assert.equal((await platform.request('GET', '/workspaces/named')).status, 404)
  })

  test('CL-7 a name with blanks and letters of any language is percent-encoded', async () => {
    const name = 'Schöne Grüße 日本/語 100%'
    const id = await platform.exec('cat', { name })
    assert.equal((await platform.request('GET', `/workspaces/${encodeURIComponent(name)}`)).body.id, id)
    const task = await platform.send(encodeURIComponent(name), 'hi')
    assert.equal(task.artifacts?.[0]?.parts[0]?.text, 'hi')
    assert.equal((await platform.request('GET', '/workspaces/%ff')).status, 404)
    assert.equal((await platform.rpc('%ff', 'ListTasks', {})).body.error.data[0].reason, 'WORKSPACE_NOT_FOUND')
  })

  test('CL-7 a name that was just written to config.yaml works in a command', async () => {
    const id = await platform.exec('cat', { name: 'before' })
    const file = join(platform.dataDir, 'workspaces', id.replace('_', '-'), 'config.yaml')
    writeFileSync(file, readFileSync(file, 'utf8').replace('name: before', 'name: afterwards'))
    const env = { MOLECULE_HOME: platform.dataDir }
    const { code, out, err } = await runCommand(['agent', 'send', 'afterwards', 'hi'], { env })
    assert.deepEqual([code, out], [0, 'hi\n'], err)
    assert.equal((await platform.request('GET', '/workspaces/before')).status, 404)
  })

  test('CL-7 a name of two workspaces is refused with their ids, and the ids keep working', async () => {
    const ids = [await platform.exec('cat', { name: 'twin' }), await platform.exec('cat', { name: 'twin' })]
    const sentence = `2 workspaces are called "twin"; use an id: ${ids.join(', ')}`
    const refused = await platform.request('GET', '/workspaces/twin')
    assert.deepEqual([refused.status, refused.body.error.message], [400, sentence])
    assert.equal((await platform.rpc('twin', 'SendMessage', { message: message('t') })).body.error.message, sentence)
    for (const id of ids) assert.equal((await platform.request('GET', `/workspaces/${id}`)).body.id, id)
  })

  test('CL-7 PL-5 an unknown task of a named workspace is an unknown task, an unknown name an unknown workspace', async () => {
    await platform.exec('cat', { name: 'asked' })
    const task = await platform.rpc('asked', 'GetTask', { id: 'none' })
    assert.equal(task.body.error.data[0].reason, 'TASK_NOT_FOUND')
    const workspace = await platform.rpc('nobody', 'GetTask', { id: 'none' })
    assert.equal(workspace.body.error.message, 'there is no workspace nobody')
  })

  test('CL-7 PL-8 a token finds only the names that it reaches, and cannot tell a hidden name from none', async () => {
    const mine = await platform.exec('cat', { name: 'shared' })
    await platform.exec('cat', { name: 'shared' })
    await platform.exec('cat', { name: 'hidden' })
    const { body } = await platform.request('POST', '/tokens', { name: 'p', role: 'caller', workspaces: [mine] })
    const read = async (path: string) => (await as(body.token, path)).json() as Promise<Record<string, unknown>>
    assert.equal((await read('/workspaces/shared'))['id'], mine)
    const answers = await Promise.all(['hidden', 'nobody'].map((name) => as(body.token, `/workspaces/${name}`)))
    assert.deepEqual(
      answers.map(({ status }) => status),
      [404, 404],
    )
  })

  test('CL-7 the card of a named workspace needs a token, so that names cannot be guessed', async () => {
    const id = await platform.exec('cat', { name: 'carded' })
    const path = '/workspaces/carded/a2a/.well-known/agent-card.json'
    assert.equal((await fetch(platform.url + path)).status, 401)
    const card = await as(platform.token, path)
    assert.ok((await card.text()).includes(`/workspaces/${id}/a2a`))
  })
})
