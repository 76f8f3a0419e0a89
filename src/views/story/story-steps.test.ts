import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MoleculeError } from '../../errors.ts'
import type { LogItem } from '../../inbox/rows/log.ts'
import type { TaskState } from '../../protocol/a2a.ts'
import {
  type LoggedItems,
  readStoryCursor,
  STORY_START,
  type StoryMessageRow,
  storySteps,
  writeStoryCursor,
} from './story-steps.ts'

const ADMITTED = [1000, 'admitted', 'admitted from person "Ana" through http']
const sentBy = (name: string) => JSON.stringify({ kind: 'person', id: 'u1', name, door: 'http' })

const MESSAGE: StoryMessageRow = {
  id: 'm1',
  workspace_id: 'ws_1',
  task_id: 'm1',
  idempotency_key: 'k',
  envelope: '',
  sender: sentBy('Ana'),
  state: 'done',
  failures: 0,
  losses: 0,
  admitted_at: 1000,
  ready_at: 1000,
  now: 9000,
  replay_of: null,
  replayed_as: null,
  discarded_at: null,
  root_id: null,
  context_id: 'c',
  principal: 'people',
  task_state: 'TASK_STATE_COMPLETED',
  status_message: null,
}

type Options = Parameters<typeof storySteps>[2]

const OPTIONS: Options = { from: STORY_START, isLast: true, detail: undefined, isOwner: false, decisions: [] }

/** The steps as [time, type, text], without the admission that begins every story. */
function tell(log: readonly LoggedItems[], message: Partial<StoryMessageRow> = {}, options: Partial<Options> = {}) {
  const { steps, state } = storySteps({ ...MESSAGE, ...message }, log, { ...OPTIONS, ...options })
  const shown = steps.map(({ at: time, type, text }) => [Date.parse(time), type, text])
  return { shown, steps: shown.slice(1), state }
}

const status = (state: TaskState, text?: string, code?: string): LogItem => ({
  t: 'status',
  state,
  ...(text !== undefined && { parts: [{ text }] }),
  ...(code !== undefined && { code }),
})
const working = status('TASK_STATE_WORKING')
const tool = (name: string, state: 'started' | 'finished'): LogItem => ({
  t: 'turn',
  event: { type: 'tool', name, state },
})
const at = (atMs: number, ...items: LogItem[]): LoggedItems => ({ atMs, items })

test('CL-1 a story has each attempt with its end, the tools of that attempt and its progress', () => {
  const { shown, state } = tell([
    at(2000, working),
    at(2100, tool('Bash', 'started'), tool('Bash', 'finished'), tool('Bash', 'started'), tool('Read', 'started')),
    at(2200, { t: 'turn', event: { type: 'status', text: 'it reads' } }),
    at(2300, status('TASK_STATE_WORKING', 'it broke', 'exit')),
    at(3000, working, { t: 'reset' }),
    at(3050, { t: 'turn', event: { type: 'text', delta: 'hello' } }),
    at(3100, { t: 'reply' }, status('TASK_STATE_COMPLETED')),
  ])
  assert.deepEqual(shown, [
    ADMITTED,
    [2000, 'started', 'attempt 1 began'],
    [2200, 'progress', 'it reads'],
    [2300, 'failed', 'attempt 1 failed: it broke (exit); it used Bash 2 times, Read'],
    [3000, 'started', 'attempt 2 began'],
    [3100, 'answered', 'attempt 2 gave the answer'],
    [3100, 'ended', 'the task is completed'],
  ])
  assert.deepEqual(state, { attempt: 2, open: false, asked: false })
})

test('CL-1 a parked message waits and did not fail; ends have the name of the state and its sentence', () => {
  const parts = [{ text: 'no ' }, { data: {} }, { text: 'room' }]
  const { steps, state } = tell([
    at(1500, status('TASK_STATE_SUBMITTED')),
    at(2000, working),
    at(2100, status('TASK_STATE_WORKING', 'parked, next try at 19:05 UTC', 'waiting')),
    at(2200, working, { t: 'reset' }),
    at(2300, { t: 'late', parts: [] }),
    at(2400, { t: 'status', state: 'TASK_STATE_REJECTED', parts, code: 'waiting' }),
    at(2500, status('TASK_STATE_CANCELED')),
    at(2600, status('TASK_STATE_FAILED', 'it broke', 'exit')),
  ])
  assert.deepEqual(steps, [
    [2000, 'started', 'attempt 1 began'],
    [2100, 'waiting', 'parked, next try at 19:05 UTC'],
    [2200, 'started', 'attempt 1 began'],
    [2300, 'late', 'a result came after another attempt had taken over; it was kept and not used'],
    [2400, 'ended', 'the task is rejected: no room'],
    [2500, 'ended', 'the task is canceled'],
    [2600, 'ended', 'the task failed for good: it broke (exit)'],
  ])
  assert.equal(state.open, false)
  assert.deepEqual(tell([at(1, status('TASK_STATE_A_B' as TaskState))]).steps, [[1, 'ended', 'the task is a b']])
})

test('CL-1 CN-3 only a failure counts as an attempt: waiting for a handler, or a lost worker, does not', () => {
  const waits = status('TASK_STATE_WORKING', 'waiting: the handler cannot run', 'waiting')
  const fails = status('TASK_STATE_WORKING', 'attempt 2 of 4 in 5 s: it broke', 'exit')
  const { steps } = tell([
    at(1, working),
    at(2, waits),
    at(3, working, { t: 'reset' }),
    at(4, working, { t: 'reset' }),
    at(5, fails),
    at(6, waits),
    at(7, working, { t: 'reset' }),
  ])
  assert.deepEqual(
    steps.map(([, , text]) => text),
    [
      'attempt 1 began',
      'waiting: the handler cannot run',
      'attempt 1 began',
      'attempt 1 was cut off before it ended: what ran it, the platform or a bridge, had stopped',
      'attempt 1 began',
      'attempt 1 failed: attempt 2 of 4 in 5 s: it broke (exit)',
      'waiting: the handler cannot run',
      'attempt 2 began',
    ],
  )
})

test('CL-1 long texts of a story are cut after 500 characters', () => {
  const [fits, long] = ['x'.repeat(500), 'x'.repeat(501)]
  const cut = `${'x'.repeat(499)}…`
  const progress = (text: string) => at(1, { t: 'turn', event: { type: 'status', text } })
  const { steps } = tell([progress(fits), progress(long), at(2, status('TASK_STATE_CANCELED', long))])
  assert.deepEqual(steps, [
    [1, 'progress', fits],
    [1, 'progress', cut],
    [2, 'ended', `the task is canceled: ${cut}`],
  ])
})

const DECIDED: readonly LogItem[] = [
  { t: 'permission', decision: 'denied', tool: 'Bash' },
  {
    t: 'permission',
    decision: 'allowed',
    tool: 'Bash',
    pattern: 'make',
    answerer: { name: 'Ana', principal: 'people', door: 'rule' },
  },
  {
    t: 'permission',
    decision: 'denied',
    tool: 'Bash',
    answerer: { name: 'Ana', principal: 'people', door: 'discord' },
  },
  { t: 'delegated', taskId: 't2', workspace: 'painter' },
  { t: 'budget', step: 'asked', text: 'the budget is spent' },
  { t: 'budget', step: 'raised', text: 'the budget was raised', by: 'Ana' },
]

test('CL-1 only an owner learns the names: who answered, whose rule it was, which workspace got the delegation', () => {
  const log = [at(2, ...DECIDED)]
  assert.deepEqual(tell(log, {}, { isOwner: true }).steps, [
    [2, 'permission', 'no answer came in time, so the use of Bash was denied'],
    [2, 'permission', 'a rule of "Ana" (people) allowed the use of Bash'],
    [2, 'permission', '"Ana" (people) denied the use of Bash through discord'],
    [2, 'delegated', 'it delegated to painter, as task t2'],
    [2, 'budget', 'the budget is spent'],
    [2, 'budget', 'the budget was raised, by "Ana"'],
  ])
  assert.deepEqual(tell(log).steps, [
    [2, 'permission', 'no answer came in time, so the use of Bash was denied'],
    [2, 'permission', 'a rule allowed the use of Bash'],
    [2, 'permission', 'a person denied the use of Bash'],
    [2, 'delegated', 'it delegated to another workspace'],
    [2, 'budget', 'the budget is spent'],
    [2, 'budget', 'the budget was raised'],
  ])
})

test('CL-1 a story begins with the sender, by name or else by id, and says what it replays', () => {
  const first = (message: Partial<StoryMessageRow>) => tell([at(2, working)], message).shown[0]
  assert.deepEqual(first({ sender: sentBy('') }), [1000, 'admitted', 'admitted from person "u1" through http'])
  assert.deepEqual(first({ replay_of: 'm0' }), [
    ...[1000, 'admitted', 'admitted from person "Ana" through http, as a replay of m0'],
  ])
})

test('CL-1 a dead letter ends with the last words of its program, and with what a person did with it', () => {
  const now = (message: Partial<StoryMessageRow>, options: Partial<Options> = {}) =>
    tell([at(2, working)], { state: 'dead', ...message }, options).steps.slice(1)
  const deadLetter = [9000, 'waiting', 'a person may run it again or discard it']
  const stderr = `${'😀'.repeat(1000)}${'y'.repeat(1996)}!`
  assert.deepEqual(now({}, { detail: stderr }), [
    [9000, 'detail', `the program said: ...${'y'.repeat(1996)}!`],
    deadLetter,
  ])
  const replayed = [9000, 'replayed', 'it was run again as task m2']
  assert.deepEqual(now({ replayed_as: 'm2', discarded_at: 8000 }), [replayed])
  assert.deepEqual(now({ discarded_at: 8000 }), [[8000, 'discarded', 'it was discarded']])
  assert.deepEqual(now({}, { isLast: false, detail: 'stderr' }), [], 'only the last part of a story has an end')
})

test('CL-1 a story whose log is pruned has the stored decisions; a later part has neither them nor the beginning', () => {
  const decisions = [{ atMs: 3, decision: 'allowed', tool: 'Bash' } as const]
  const { shown } = tell([], {}, { decisions })
  assert.deepEqual(shown, [
    ADMITTED,
    [3, 'permission', 'no answer came in time, so the use of Bash was denied'],
    [9000, 'pruned', 'later events are no longer kept'],
  ])
  assert.deepEqual(tell([at(2, working)], {}, { decisions }).steps, [[2, 'started', 'attempt 1 began']])
  const from = { seq: 1, attempt: 2, open: true, asked: false }
  assert.deepEqual(tell([], {}, { decisions, from }).shown, [])
  assert.deepEqual(tell([at(2, { t: 'reply' })], {}, { from }).shown, [[2, 'answered', 'attempt 2 gave the answer']])
})

test('CL-1 the cursor of a story brings back its place and its attempt; any other text is refused', () => {
  for (const cursor of [
    { seq: 12, attempt: 3, open: true, asked: false },
    { seq: 0, attempt: 0, open: false, asked: true },
  ]) {
    assert.deepEqual(readStoryCursor(writeStoryCursor(cursor)), cursor)
  }
  assert.equal(writeStoryCursor({ seq: 12, attempt: 3, open: true, asked: false }), '12.3.1.0')
  for (const text of ['', '1.2.3.0', '1.2.1', 'x1.2.1.0', '1.2.1.00']) {
    assert.throws(
      () => readStoryCursor(text),
      (error) =>
        error instanceof MoleculeError &&
        error.code === 'invalid_request' &&
        (error.details as { path?: string }).path === 'after',
    )
  }
})
