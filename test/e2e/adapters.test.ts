/** Adapters in the data folder, on a real platform. */
import assert from 'node:assert/strict'
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { startPlatform } from '../harness/platform.ts'

const EXAMPLE = join(import.meta.dirname, '..', '..', 'docs', 'backends', 'example-adapter')

test('RT-10 an adapter folder becomes a runtime at start; a broken adapter is reported and skipped', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'molecule-e2e-'))
  cpSync(EXAMPLE, join(dataDir, 'adapters', 'parrot'), { recursive: true })
  mkdirSync(join(dataDir, 'adapters', 'broken'))
  const platform = await startPlatform({ dataDir })
  try {
    assert.match(platform.output(), /adapter \\?"broken\\?" is skipped: it has no package.json/)
    const { body } = await platform.request('POST', '/workspaces', { name: 'Polly', runtime: 'parrot' })
    const task = await platform.send(body.id, 'hello there')
    assert.equal(task.artifacts?.[0]?.parts[0]?.text, 'hello there')
    const unknown = await platform.request('POST', '/workspaces', { name: 'x', runtime: 'broken' })
    assert.match(JSON.stringify(unknown.body), /unknown backend .*known: .*parrot/)
  } finally {
    await platform.dispose()
    rmSync(dataDir, { recursive: true, force: true })
  }
})
