import assert from 'node:assert/strict'
import { test } from 'node:test'
import { permissionOf } from './permission-sentences.ts'

test('CV-2 CV-3 only an agent that can ask is said to ask', () => {
  assert.equal(permissionOf({ runtime: 'claude-code' }), 'ask')
  assert.equal(permissionOf({ runtime: 'codex', permission: 'bypass' }), 'bypass')
  assert.equal(permissionOf({ runtime: 'gemini', runtime_config: { permission: 'bypass' } }), 'bypass')
  for (const more of [{ permission: 'allowed_tools' as const }, { runtime_config: { mode: 'oneshot' } }]) {
    assert.equal(permissionOf({ runtime: 'opencode', ...more }), 'allowed_tools')
  }
  for (const runtime of ['exec', 'stdio', 'mock', 'openai', 'a2a', 'mcp', 'openclaw', 'external', 'my-adapter']) {
    assert.equal(permissionOf({ runtime }), undefined, runtime)
  }
})
