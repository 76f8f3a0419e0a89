import assert from 'node:assert/strict'
import { chmodSync, cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { listEvents, makeTurn } from '../../test/fakes/turns.ts'
import { createProcessHarness, PLAIN_ENVIRONMENT, temporaryDir } from '../../test/harness/process-harness.ts'
import { systemClock } from '../clock.ts'
import { MoleculeError } from '../errors.ts'
import { silentLog } from '../log.ts'
import { loadAdapters } from './adapters.ts'
import { createBackendRegistry } from './backends.ts'
import { createOptions } from './options.ts'

const EXAMPLE = join(import.meta.dirname, '..', '..', 'docs', 'backends', 'example-adapter')

function setUp(t: TestContext) {
  const dir = temporaryDir(t)
  const reported: string[] = []
  const log = { ...silentLog, error: (_: object, message: string) => void reported.push(message) } as typeof silentLog
  const add = (name: string, code: string, manifest: object = {}) => {
    mkdirSync(join(dir, name))
    writeFileSync(join(dir, name, 'package.json'), JSON.stringify({ type: 'module', main: 'a.js', ...manifest }))
    writeFileSync(join(dir, name, 'a.js'), code)
  }
  const load = async (taken: readonly string[] = []) =>
    (await loadAdapters({ dir, taken, log })).loaded.map(({ definition }) => definition)
  return { dir, add, load, reported }
}

const source = (name: string, more = '') =>
  `export const backend = { name: '${name}', summary: 's', options: {}, reportsTools: false, create: () => ({
    name: '${name}', validate: async () => ({ ok: true }), close: async () => undefined, run }) }
   async function* run() { ${more || "yield { type: 'done', parts: [{ text: 'hi' }], finality: 'completed' }"} }`

test('RT-10 the documented example is registered and answers', async (t) => {
  const { dir, load, reported } = setUp(t)
  cpSync(EXAMPLE, join(dir, 'parrot'), { recursive: true })
  const [parrot] = await load()
  assert.deepEqual([parrot?.name, reported], ['parrot', []])
  const { processes } = createProcessHarness(t)
  const context = { processes, environment: PLAIN_ENVIRONMENT, clock: systemClock, log: silentLog }
  const backend = parrot?.create(createOptions({}), context)
  const events = await listEvents(backend?.run(makeTurn({ text: 'one two' }), new AbortController().signal) ?? never())
  assert.deepEqual(events.at(-1), { type: 'done', parts: [{ text: 'one two' }], finality: 'completed' })
  const grumpy = parrot?.create(createOptions({ mood: 'grumpy' }), context)
  const [end] = await listEvents(grumpy?.run(makeTurn({ text: 'x' }), new AbortController().signal) ?? never())
  assert.ok(end?.type === 'failed' && end.error instanceof MoleculeError)
  assert.deepEqual(
    [end.error.code, end.error.message, end.error.details],
    ['agent_failed', 'not today', { forCaller: true }],
  )
})

test('RT-10 BK-6 a broken adapter, or one whose name is taken, is logged by name and skipped; the others work', async (t) => {
  const { dir, add, load, reported } = setUp(t)
  add('a-good', source('good'))
  add('b-again', source('good'))
  add('c-exec', source('exec'))
  add('d-syntax', 'export const backend = {')
  add('e-throws', "throw new Error('no licence')")
  add('f-nothing', 'export const other = 1')
  add('g-nameless', source(''))
  add('h-factory', "export default { name: 'h', summary: '', options: {}, create: 1 }")
  add('i-setup', `${source('i')}; export const setup = async () => { throw new Error('no database') }`)
  mkdirSync(join(dir, 'j-empty'))
  add('k-manifest', source('k'))
  writeFileSync(join(dir, 'k-manifest', 'package.json'), '{')
  add('z-last', source('last'), { main: undefined, exports: { '.': { import: './a.js' } } })
  writeFileSync(join(dir, 'README.md'), 'no adapter')
  const loaded = await load(['exec'])
  assert.deepEqual(
    loaded.map(({ name }) => name),
    ['good', 'last'],
  )
  const expected = [
    /"b-again" is skipped: the name "good" is taken/,
    /"c-exec" is skipped: the name "exec" is taken/,
    /"d-syntax" is skipped: .*\.js cannot be loaded: Unexpected/,
    /"e-throws" is skipped: no licence/,
    /"f-nothing" is skipped: it exports no backend/,
    /"g-nameless" is skipped: the name/,
    /"h-factory" is skipped: .*create must be a function/,
    /"i-setup" is skipped: no database/,
    /"j-empty" is skipped: it has no package.json/,
    /"k-manifest" is skipped/,
  ]
  assert.equal(reported.length, expected.length)
  for (const [n, message] of expected.entries()) assert.match(reported[n] ?? '', message)
})

test('RT-10 code that every user of the machine may write is not run', async (t) => {
  const { dir, add, load, reported } = setUp(t)
  add('open', source('open'))
  chmodSync(join(dir, 'open', 'a.js'), 0o666)
  assert.deepEqual(await load(), [])
  assert.match(reported[0] ?? '', /can be written by every user/)
})

test('RT-10 without an adapters folder there are no adapters', async (t) => {
  const { dir } = setUp(t)
  assert.deepEqual((await loadAdapters({ dir: join(dir, 'none'), taken: [], log: silentLog })).loaded, [])
})

test('RT-10 an error of any class keeps its code, and an error without one is agent_failed', async (t) => {
  const { add, load } = setUp(t)
  const error = `Object.assign(new Error('wait'), { code: 'rate_limited', retryable: true, details: { resetAfterMs: 5 } })`
  add('limited', source('limited', `yield { type: 'failed', error: ${error} }`))
  add('odd', source('odd', "yield { type: 'failed', error: 'just a text' }"))
  const { processes } = createProcessHarness(t)
  const context = { processes, environment: PLAIN_ENVIRONMENT, clock: systemClock, log: silentLog }
  const ends: unknown[] = []
  for (const definition of await load()) {
    const backend = definition.create(createOptions({}), context)
    const [end] = await listEvents(backend.run(makeTurn({ text: 'x' }), new AbortController().signal))
    assert.ok(end?.type === 'failed' && end.error instanceof MoleculeError)
    ends.push([end.error.code, end.error.retryable, end.error.message, end.error.details])
  }
  assert.deepEqual(ends, [
    ['rate_limited', true, 'wait', { resetAfterMs: 5 }],
    ['agent_failed', false, 'just a text', {}],
  ])
})

test('RT-10 every field of a backend that is an instance of a class works', async (t) => {
  const { add, load } = setUp(t)
  add(
    'whole',
    `class Agent {
      name = 'whole'
      stallMs = 7
      drifts = [{ missing: 'option --acp missing' }]
      limits() { if (this.name === 'closed') throw new Error('late'); return [this.name, 7] }
      mcpToolName(server, tool) { return [this.name, server, tool].join('.') }
      async probe() { return this.drifts }
      async validate() { return { ok: true, version: this.name } }
      async *run() { yield { type: 'done', parts: [{ text: this.name }], finality: 'completed' } }
      async close() { this.name = 'closed' }
    }
    export const backend = { name: 'whole', summary: 's', options: {}, reportsTools: true, runsCommands: true, tested: '1.2',
      create: () => new Agent() }`,
  )
  const definitions = await load()
  const { processes } = createProcessHarness(t)
  const context = { processes, environment: PLAIN_ENVIRONMENT, clock: systemClock, log: silentLog }
  const registry = createBackendRegistry(definitions)
  const [definition] = definitions
  assert.deepEqual([definition?.reportsTools, definition?.runsCommands, definition?.tested], [true, true, '1.2'])
  const { signal } = new AbortController()
  for (const backend of [definition?.create(createOptions({}), context), registry.build('whole', {}, context)]) {
    assert.deepEqual([backend?.name, backend?.stallMs], ['whole', 7])
    assert.equal(backend?.mcpToolName?.('lab', 'ping'), 'whole.lab.ping')
    assert.deepEqual(backend?.limits?.(), ['whole', '7'])
    assert.deepEqual(await backend?.probe?.(signal), [{ missing: 'option --acp missing' }])
    assert.deepEqual(await backend?.validate(signal), { ok: true, version: 'whole' })
    await backend?.close()
    assert.deepEqual(await backend?.validate(signal), { ok: true, version: 'closed' })
    assert.deepEqual(backend?.limits?.(), [])
  }
})

function never(): never {
  throw new Error('there is no backend')
}
