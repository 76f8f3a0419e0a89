import assert from 'node:assert/strict'
import { test } from 'node:test'
import { leaseOf, letterTo, SENDER } from '../../test/fakes/letters.ts'
import { manualClock } from '../../test/fakes/manual-clock.ts'
import { present } from '../../test/harness/present.ts'
import type { Backend, BackendEvent, Turn } from '../backends/backend.ts'
import { MoleculeError } from '../errors.ts'
import type { Inbox, Lease, LeaseStanding, NumberedEvents } from '../inbox/worker.ts'
import { silentLog } from '../log.ts'
import type { Brief } from '../protocol/brief.ts'
import { runTurn, type TurnControls } from './turn.ts'

const BRIEF: Brief = { runtime: 'x', options: {}, systemPrompt: 's', workingDir: '/w', maxAttempts: 1, env: {} }
const LEASE = leaseOf({ epoch: 7, ...letterTo('ws_1', { text: 'hello', messageId: 'sent' }), idempotencyKey: 'k' })
const DONE = { type: 'done', parts: [{ text: 'ok' }], finality: 'completed' } as const
const RELEASED = 'a turn was given back; no attempt is counted'

interface Played {
  readonly brief?: () => Brief
  readonly lease?: Partial<Lease>
  readonly play?: (turn: Turn, signal: AbortSignal) => AsyncIterable<BackendEvent>
  readonly build?: () => never
  readonly stallMs?: number
  readonly standing?: LeaseStanding
}

/** Runs one turn on a backend that the test plays. */
async function run(options: Played = {}) {
  const { brief = () => BRIEF, stallMs, standing = 'held' } = options
  const clock = manualClock()
  const seen = { turns: [] as Turn[], signals: [] as AbortSignal[], givenBack: 0 }
  const appended: NumberedEvents[] = []
  const standings: LeaseStanding[] = []
  const warned: unknown[] = []
  const controls: TurnControls[] = []
  const play = options.play ?? (() => events(DONE))
  const backend: Backend = {
    name: 'played',
    ...(stallMs !== undefined && { stallMs }),
    validate: async () => ({ ok: true }),
    run(turn, signal) {
      seen.turns.push(turn)
      seen.signals.push(signal)
      return play(turn, signal)
    },
    close: async () => undefined,
  }
  const inbox = {
    async append(_key: unknown, given: NumberedEvents) {
      appended.push(given)
      return standing
    },
  } as Partial<Inbox> as Inbox
  const giveBack = () => {
    seen.givenBack += 1
  }
  const ended = runTurn(
    { ...LEASE, ...options.lease },
    {
      inbox,
      clock,
      isShuttingDown: () => false,
      onStanding: (each) => void standings.push(each),
      log: { ...silentLog, warn: (fields, message) => void warned.push([Object.keys(fields), message]) },
      brief: async () => brief(),
      take: () => options.build?.() ?? { backend, giveBack },
      onBegun: (given) => void controls.push(given),
    },
    new AbortController().signal,
  )
  return { clock, seen, appended, standings, warned, controls, ended }
}

async function* events(...given: readonly BackendEvent[]): AsyncIterable<BackendEvent> {
  yield* given
}

const outcomeOf = async (options: Played) => (await (await run(options)).ended).outcome

test('the backend gets the message, the brief and nothing that neither of them has', async () => {
  const { seen, ended, controls } = await run()
  assert.deepEqual(await ended, {
    outcome: { type: 'done', finality: 'completed', parts: [{ text: 'ok' }], artifacts: [] },
    unsent: { from: 1, events: [] },
  })
  const [turn] = seen.turns
  assert.ok(turn)
  const { ask: _, onWait: __, request, ...rest } = turn
  assert.deepEqual(present(rest), {
    id: 'm.7',
    messageId: 'm',
    conversationId: 'c',
    prompt: 'hello',
    systemPrompt: 's',
    workingDir: '/w',
    mcpServers: [],
    notes: {},
    env: {},
  })
  assert.deepEqual([request.caller_id, request.sender, request.context_id], ['', SENDER, 'x'])
  assert.deepEqual([seen.givenBack, controls.length], [1, 1])
})

test('the backend gets session, history, model, notes and trace of a turn that has them, and the id of an agent', async () => {
  const history = [{ messageId: 'h', role: 'ROLE_USER', parts: [{ text: 'before' }] }] as const
  const brief = { ...BRIEF, sessionToken: 's1', history, model: 'large', notes: { k: 'v' }, env: { A: 'b' } }
  const envelope = { ...LEASE.envelope, trace: { traceparent: '00-1-2-01' } }
  const sender = { kind: 'agent', id: 'ws_2', name: 'other', door: 'http' } as const
  const { seen, ended } = await run({ brief: () => brief, lease: { envelope, sender } })
  await ended
  const [turn] = seen.turns
  assert.deepEqual([turn?.sessionToken, turn?.history, turn?.model, turn?.notes], ['s1', history, 'large', { k: 'v' }])
  assert.deepEqual([turn?.env, turn?.request.caller_id], [{ A: 'b', TRACEPARENT: '00-1-2-01' }, 'ws_2'])
})

test('TW-1 a turn with a token gets the MCP server of its workspace, as a URL and as a program', async () => {
  const env = { MOLECULE_API_URL: 'http://here', MOLECULE_WORKSPACE_TOKEN: 'mol_x', PATH: '/bin' }
  const serversOf = async (brief: Partial<Brief>) => {
    const { seen, ended } = await run({ brief: () => ({ ...BRIEF, ...brief }) })
    await ended
    return seen.turns[0]?.mcpServers
  }
  const server = (programEnv: object) => ({
    name: 'molecule',
    url: 'http://here/workspaces/ws_1/mcp',
    tokenVariable: 'MOLECULE_WORKSPACE_TOKEN',
    token: 'mol_x',
    program: { name: 'molecule', command: 'molecule', args: ['mcp', '--workspace', 'ws_1'], env: programEnv },
  })
  assert.deepEqual(await serversOf({ hasMcp: true, env }), [server(env)])
  const { PATH: _, ...withoutPath } = env
  assert.deepEqual(await serversOf({ hasMcp: true, env: withoutPath }), [server(withoutPath)])
  assert.deepEqual(await serversOf({ hasMcp: false, env }), [])
  assert.deepEqual(await serversOf({ env }), [])
  assert.deepEqual(await serversOf({ hasMcp: true, env: { MOLECULE_API_URL: 'http://here' } }), [])
  assert.deepEqual(await serversOf({ hasMcp: true, env: { MOLECULE_WORKSPACE_TOKEN: 'mol_x' } }), [])
})

test('RT-11 the prompt begins with what the workspace remembers, the stored conversation and the interruption', async () => {
  const note =
    'Note: an earlier attempt at this message was interrupted. Check what is already done before you do it again.'
  const promptOf = async (brief: Partial<Brief>, interrupted: boolean) => {
    const { seen, ended } = await run({ brief: () => ({ ...BRIEF, ...brief }), lease: { interrupted } })
    await ended
    return seen.turns[0]?.prompt.split('\n\n')
  }
  const recalled = 'remembered'
  const earlierConversation = { text: 'stored' }
  assert.deepEqual(await promptOf({}, false), ['hello'])
  assert.deepEqual(await promptOf({}, true), [note, 'hello'])
  assert.deepEqual(await promptOf({ recalled }, false), [recalled, 'hello'])
  assert.deepEqual(await promptOf({ earlierConversation }, false), ['stored', 'hello'])
  assert.deepEqual(await promptOf({ earlierConversation: {} }, false), ['hello'])
  assert.deepEqual(await promptOf({ recalled, earlierConversation }, true), [recalled, 'stored', note, 'hello'])
})

test('a done turn keeps its artifacts, a new session, its usage and the notice', async () => {
  const artifact = { artifactId: 'a', parts: [{ text: 'file' }] }
  const play = () =>
    events(
      { type: 'session', token: 'new' },
      { type: 'artifact', artifact, append: false, lastChunk: true },
      { type: 'usage', inputTokens: 1 },
      { type: 'usage', inputTokens: 3, costUsd: 0.5 },
      DONE,
      { type: 'text', delta: 'too late' },
    )
  const earlierConversation = { notice: 'was lost' }
  const brief = () => ({ ...BRIEF, sessionToken: 'old', earlierConversation })
  const { ended } = await run({ play, brief })
  assert.deepEqual(await ended, {
    outcome: {
      ...DONE,
      artifacts: [artifact],
      session: 'new',
      notice: 'was lost',
      usage: { inputTokens: 3, costUsd: 0.5, durationMs: 0 },
    },
    unsent: { from: 1, events: [{ type: 'artifact', artifact, append: false, lastChunk: true }] },
  })
  const same = await outcomeOf({ play, brief: () => ({ ...BRIEF, sessionToken: 'new' }) })
  assert.equal(same.type === 'done' && same.session, undefined)
})

test('RT-13 a metered turn has its duration; another one only with usage that the agent reports', async () => {
  const usageOf = async (metered?: boolean) =>
    (await outcomeOf({ brief: () => ({ ...BRIEF, ...(metered !== undefined && { metered }) }) })).usage
  assert.deepEqual(
    [await usageOf(true), await usageOf(false), await usageOf()],
    [{ durationMs: 0 }, undefined, undefined],
  )
})

test('a failed turn keeps the artifacts that it finished; without one it has none', async () => {
  const artifact = { artifactId: 'a', parts: [{ text: 'file' }] }
  const failed: BackendEvent = { type: 'failed', error: new MoleculeError('vetoed', 'I could not') }
  const failure = { code: 'vetoed', message: 'I could not', details: {} }
  const finished: BackendEvent = { type: 'artifact', artifact, append: false, lastChunk: true }
  const withOne = await outcomeOf({ play: () => events(finished, failed) })
  assert.deepEqual(withOne, { type: 'dead', failure, artifacts: [artifact] })
  assert.deepEqual(await outcomeOf({ play: () => events(failed) }), { type: 'dead', failure })
  const passing: BackendEvent = { type: 'failed', error: new MoleculeError('exit', 'x', { retryable: true }) }
  const { outcome } = await (
    await run({ play: () => events(finished, passing), brief: () => ({ ...BRIEF, maxAttempts: 2 }) })
  ).ended
  assert.deepEqual([outcome.type, 'artifacts' in outcome], ['retry', false])
})

test('a turn that cannot begin is released if that may pass, and else a dead letter; only a release is logged', async () => {
  const away = new MoleculeError('store_unavailable', 'away', { retryable: true })
  const throwing = (error: unknown) => () => {
    throw error
  }
  const cases = [
    { options: { brief: throwing(away) }, type: 'released', warned: 1 },
    { options: { brief: throwing(new Error('no file')) }, type: 'dead', warned: 0 },
    { options: { build: throwing(new MoleculeError('bad_config', 'no cmd')) }, type: 'dead', warned: 0 },
  ] as const
  for (const { options, type, warned } of cases) {
    const { ended, seen, warned: lines } = await run(options)
    const { outcome, unsent } = await ended
    assert.deepEqual([outcome.type, unsent, seen.turns.length], [type, { from: 1, events: [] }, 0])
    assert.deepEqual(lines, Array(warned).fill([['err', 'workspaceId', 'messageId'], RELEASED]))
    if (outcome.type === 'released') assert.deepEqual(outcome, { type: 'released', interrupted: false })
    else assert.equal(outcome.type === 'dead' && outcome.failure.code, 'bad_config')
  }
})

test('RT-13 a parked brief gives the message back with the time and the reason, and begins nothing', async () => {
  const parked = { afterMs: 5000, reason: 'waiting: used up' }
  const { ended, seen, controls } = await run({ brief: () => ({ ...BRIEF, parked }) })
  const said = { parts: [{ text: 'waiting: used up' }] }
  assert.deepEqual(present((await ended).outcome), {
    type: 'released',
    interrupted: false,
    parked: { afterMs: 5000, said },
  })
  assert.deepEqual([seen.turns.length, controls.length, seen.givenBack], [0, 0, 0])
})

test('RE-3 a turn that the machine could not run is logged with its reason; another failure is not', async () => {
  const cause = Object.assign(new Error('spawn'), { code: 'EMFILE' })
  const error = new MoleculeError('spawn_failed', 'no handles', { retryable: true, cause })
  const exhausted = await run({ play: () => events({ type: 'failed', error }) })
  assert.equal((await exhausted.ended).outcome.type, 'released')
  assert.deepEqual(exhausted.warned, [[['err', 'workspaceId', 'messageId'], RELEASED]])
  const failed = await run({ play: () => events({ type: 'failed', error: new MoleculeError('exit', 'x') }) })
  await failed.ended
  assert.deepEqual([failed.warned, failed.seen.givenBack], [[], 1])
})

test('a stream without an end can be retried, and only a tool counts as a tool', async () => {
  const outcome = await outcomeOf({
    play: () => events({ type: 'activity' }, { type: 'text', delta: 'half' }),
    brief: () => ({ ...BRIEF, maxAttempts: 2 }),
  })
  assert.deepEqual(outcome.type === 'retry' && [outcome.failure.code, outcome.interrupted], ['no_end', true])
  const timeout = (): BackendEvent => ({
    type: 'failed',
    error: new MoleculeError('timeout', 'slow', { retryable: true }),
  })
  const typeAfter = async (...before: BackendEvent[]) =>
    (await outcomeOf({ play: () => events(...before, timeout()), brief: () => ({ ...BRIEF, maxAttempts: 2 }) })).type
  assert.equal(await typeAfter({ type: 'activity' }, { type: 'text', delta: 'x' }), 'retry')
  assert.equal(await typeAfter({ type: 'tool', name: 'edit', state: 'started' }), 'dead')
})

test('a note is durable before the next event is read, and the turn hears how its lease stands', async () => {
  const order: string[] = []
  const play = async function* (): AsyncIterable<BackendEvent> {
    yield { type: 'note', key: 'k', value: 'v' }
    order.push('next')
    yield DONE
  }
  const { ended, appended, standings } = await run({ play, standing: 'stop' })
  await ended
  assert.deepEqual(appended, [{ from: 1, events: [], notes: { k: 'v' } }])
  assert.deepEqual([standings, order], [['stop'], ['next']])
})

test('the stall timer is restarted by each event, ends a silent turn, and stops with the turn', async () => {
  const signs: PromiseWithResolvers<void>[] = [1, 2, 3].map(() => Promise.withResolvers())
  const play = async function* (): AsyncIterable<BackendEvent> {
    for (const sign of signs) {
      await sign.promise
      yield { type: 'activity' }
    }
    yield DONE
  }
  const { clock, seen, ended } = await run({ play, stallMs: 1000 })
  for (const sign of signs) {
    await clock.settle()
    clock.advance(999)
    sign.resolve()
    await clock.settle()
  }
  assert.equal((await ended).outcome.type, 'done')
  clock.advance(10_000)
  assert.equal(seen.signals[0]?.aborted, false)
})
