import assert from 'node:assert/strict'
import { test } from 'node:test'
import { builtinBackends } from '../../../src/backends/backends.ts'
import { EMPTY_DRAFT, findProblems, toBody } from './local-draft.ts'
import { canAsk, groupRuntimes } from './runtimes.ts'

const found = (backend: string, installed: boolean) => ({
  backend,
  program: backend,
  installed,
  logged_in: installed,
  warm: true,
})

test('CV-3 every backend is offered once: what was found, a command and the mock first', () => {
  const agents = ['claude-code', 'codex', 'gemini', 'opencode', 'hermes', 'openclaw'] as const
  const { here, more } = groupRuntimes(agents.map((backend) => found(backend, backend === 'codex')))
  assert.deepEqual(
    here.map(({ backend }) => backend),
    ['codex', 'exec', 'mock'],
  )
  const offered = [...here, ...more].map(({ backend }) => backend).sort()
  assert.deepEqual(
    offered,
    builtinBackends.map(({ name }) => name).sort((a, b) => (a < b ? -1 : 1)),
  )
})

test('CV-3 what a runtime needs is asked for, and only that is sent', () => {
  const problemsOf = (backend: string, options = {}) =>
    Object.keys(findProblems({ ...EMPTY_DRAFT, backend, options }, new Set()))
  assert.deepEqual(problemsOf('stdio'), ['runtime_config.cmd'])
  assert.deepEqual(problemsOf('openai'), ['model'])
  assert.deepEqual(problemsOf('mcp', { tool: 'search', url: 'http://a', command: 'b' }), ['runtime_config.command'])
  assert.deepEqual(problemsOf('mcp', { tool: 'search', url: 'http://a' }), [])
  const draft = {
    ...EMPTY_DRAFT,
    backend: 'a2a',
    options: { cmd: 'left over', url: ' https://a ' },
    model: 'left over',
  }
  assert.deepEqual(toBody(draft, { suggested: 'Remote agent', path: undefined }), {
    name: 'Remote agent',
    runtime: 'a2a',
    runtime_config: { url: 'https://a' },
  })
})

test('CV-3 only an agent that can ask has a permission to choose', () => {
  const asking = builtinBackends.map(({ name }) => name).filter(canAsk)
  assert.deepEqual(asking.toSorted(), ['acp', 'claude-code', 'codex', 'gemini', 'hermes', 'opencode'])
  const draft = { ...EMPTY_DRAFT, backend: 'openclaw', permission: 'bypass' as const }
  assert.equal(toBody(draft, { suggested: 'OpenClaw', path: undefined }).permission, undefined)
})
