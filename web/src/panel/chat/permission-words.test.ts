import assert from 'node:assert/strict'
import { test } from 'node:test'
import { permissionWords } from './permission-words.ts'

test('CV-2 only an agent that can ask is said to ask', () => {
  assert.equal(permissionWords({ runtime: 'claude-code' }), 'asks before it acts')
  assert.equal(permissionWords({ runtime: 'codex', permission: 'bypass' }), 'acts without asking')
  assert.equal(permissionWords({ runtime: 'gemini', runtime_config: { permission: 'bypass' } }), 'acts without asking')
  for (const more of [{ permission: 'allowed_tools' as const }, { runtime_config: { mode: 'oneshot' } }]) {
    assert.equal(permissionWords({ runtime: 'opencode', ...more }), 'uses only the tools that you have allowed')
  }
  for (const runtime of ['exec', 'stdio', 'mock', 'openai', 'a2a', 'mcp', 'openclaw', 'external', 'my-adapter']) {
    assert.equal(permissionWords({ runtime }), undefined, runtime)
  }
})
