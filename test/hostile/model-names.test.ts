/** A model whose name is an option of the agent's program. No way to set a model may let it reach a command line. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { CLAUDE_LOGGED_IN, createFakeProgram } from '../fakes/agents/fake-program.ts'
import { startPlatformFor } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

const NAMES = ['--yolo', ' -m', 'openai/--yolo']

test('RE-9 PL-30 a model that begins with a dash is refused wherever a model is set', async (t) => {
  const platform = await startPlatformFor(t, { env: CLAUDE_LOGGED_IN })
  const { path: bin } = createFakeProgram('claude')
  const make = (more: object) =>
    platform.request('POST', '/workspaces', { name: 'Ada', runtime: 'claude-code', ...more })
  const { body: ada } = await make({ model: 'opus', runtime_config: { bin } })
  const file = join(platform.dataDir, 'workspaces', ada.id.replace('ws_', 'ws-'), 'config.yaml')
  for (const model of NAMES) {
    const tries = [
      await make({ model, runtime_config: { bin } }),
      await make({ runtime_config: { bin, model } }),
      await platform.request('PATCH', `/workspaces/${ada.id}`, { model }),
      await platform.request('PATCH', `/workspaces/${ada.id}`, { runtime_config: { model } }),
    ]
    for (const { status, body } of tries) {
      assert.equal(status, 400, JSON.stringify(body))
      assert.match(body.error.message, /model.*must not begin with a dash/)
    }
    const put = await fetch(`${platform.url}/workspaces/${ada.id}/files/config.yaml`, {
      method: 'PUT',
      headers: { Authorization: `Bearer ${platform.token}` },
      body: `name: Ada\nruntime: claude-code\nmodel: ${JSON.stringify(model)}\n`,
    })
    assert.equal(put.status, 400, await put.text())
  }
  // The owner of the folder writes it without asking the platform.
  writeFileSync(file, `name: Ada\nruntime: claude-code\nmodel: openai/--yolo\nruntime_config:\n  bin: ${bin}\n`)
  await waitUntil(async () => {
    const { body } = await platform.request('GET', `/workspaces/${ada.id}`)
    return body.status === 'failed' && /must not begin with a dash/.test(body.status_reason)
  })
})
