import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { CLIS, findVersions } from '../../test/agents/clis.ts'
import { createProcessHarness, PLAIN_ENVIRONMENT } from '../../test/harness/process-harness.ts'
import { systemClock } from '../clock.ts'
import { silentLog } from '../log.ts'
import type { BackendDefinition } from './backend.ts'
import { builtinBackends, createBackendRegistry, resolveBackendName } from './backends.ts'
import { mock } from './mock/mock.ts'

const named = (name: string): BackendDefinition => ({ ...mock, name })

test('BK-6 names are sorted, and the built-in list is complete', () => {
  const registry = createBackendRegistry([named('zebra'), named('ant'), named('mouse')])
  assert.deepEqual(registry.names(), ['ant', 'mouse', 'zebra'])
  const builtin = ['a2a', 'acp', 'claude-code', 'codex', 'exec', 'gemini', 'hermes', 'mcp', 'mock']
  assert.deepEqual(createBackendRegistry(builtinBackends).names(), [
    ...builtin,
    'openai',
    'openclaw',
    'opencode',
    'stdio',
  ])
})

test('BK-6 an empty name, a missing factory and a duplicate name are refused', () => {
  for (const name of ['', '  ']) {
    assert.throws(() => createBackendRegistry([named(name)]), { code: 'bad_config', message: 'a backend has no name' })
  }
  const broken = { ...mock, name: 'broken', create: undefined } as unknown as BackendDefinition
  assert.throws(() => createBackendRegistry([broken]), { code: 'bad_config', message: /"broken" has no factory/ })
  assert.throws(() => createBackendRegistry([named('twice'), named('twice')]), {
    code: 'bad_config',
    message: 'two backends are called "twice"',
  })
})

test('BK-6 an unknown name fails with the sorted list of known names', (t) => {
  const registry = createBackendRegistry([named('zebra'), named('ant')])
  const error = { code: 'bad_config', message: 'unknown backend "cat"; known: ant, zebra' }
  assert.throws(() => registry.get('cat'), error)
  assert.throws(() => registry.build('cat', {}, context(t)), error)
  assert.throws(() => registry.get('constructor'), { code: 'bad_config' })
})

test('BK-6 a known name gives its backend; BK-5 unknown option keys are ignored', async (t) => {
  const registry = createBackendRegistry(builtinBackends)
  const backend = registry.build('mock', { reply: 'hi', nonsense: 'x' }, context(t))
  assert.equal(backend.name, 'mock')
  assert.equal(registry.get('mock'), mock)
  assert.deepEqual(await backend.validate(new AbortController().signal), {
    ok: true,
    note: 'answers by itself, without an agent',
  })
})

const context = (t: Parameters<typeof createProcessHarness>[0]) => ({
  processes: createProcessHarness(t).processes,
  environment: PLAIN_ENVIRONMENT,
  clock: systemClock,
  log: silentLog,
})

test('BK-7 every registered name, the short name claude, and undefined for the default are resolved', () => {
  const registered = ['claude-code', 'codex', 'exec']
  for (const name of registered) assert.equal(resolveBackendName(name, registered), name)
  assert.equal(resolveBackendName('claude', registered), 'claude-code')
  assert.equal(resolveBackendName(undefined, registered), 'claude-code')
})

test('AG-13 BK-7 property 7: a known name is resolved, undefined is claude, and any other text is refused with the valid names', () => {
  const registered = ['claude-code', 'codex', 'gemini', 'opencode']
  const known = { claude: 'claude-code', ...Object.fromEntries(registered.map((name) => [name, name])) }
  const anyName = fc.oneof(fc.constantFrom(...Object.keys(known)), fc.string(), fc.constant(undefined))
  fc.assert(
    fc.property(anyName, (name) => {
      if (name === undefined) return assert.equal(resolveBackendName(name, registered), 'claude-code')
      const expected = Object.entries(known).find(([short]) => short === name)?.[1]
      if (expected !== undefined) return assert.equal(resolveBackendName(name, registered), expected)
      assert.throws(() => resolveBackendName(name, registered), /valid: claude, claude-code, codex, gemini, opencode/)
    }),
    { numRuns: 100 },
  )
})

test('CL-3 RT-18 the tested versions of each backend are the versions that the real-agent tests run', () => {
  const registry = createBackendRegistry(builtinBackends)
  const name = (cli: string) => (cli === 'claude' ? 'claude-code' : cli)
  for (const cli of new Set(CLIS.map((one) => one.name))) {
    const { tested, testedFrom } = registry.get(name(cli))
    const versions = findVersions(cli).map(({ version }) => version)
    assert.deepEqual(versions, testedFrom === undefined ? [tested] : [tested, testedFrom])
  }
})
