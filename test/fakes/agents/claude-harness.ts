/** The claude-code backend on the runnable fake, and what tests ask of a turn: its reply, its error, its session. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { BackendEvent } from '../../../src/backends/backend.ts'
import { claudeCode } from '../../../src/backends/claude-code/claude-code.ts'
import { createOptions } from '../../../src/backends/options.ts'
import { type Clock, systemClock } from '../../../src/clock.ts'
import type { MoleculeError } from '../../../src/errors.ts'
import { silentLog } from '../../../src/log.ts'
import { markedPids } from '../../harness/live-processes.ts'
import { createProcessHarness, PLAIN_ENVIRONMENT } from '../../harness/process-harness.ts'
import { listEvents, makeTurn, type TurnOverrides } from '../turns.ts'
import type { FakeProgram } from './fake-program.ts'

export interface SetUpClaudeOptions {
  readonly options?: Readonly<Record<string, string>>
  readonly environment?: Readonly<Record<string, string>>
  readonly clock?: Clock
  readonly program: FakeProgram
}

/** A backend of claude on the fake, closed when the test ends. */
export function setUpClaude(t: TestContext, given: SetUpClaudeOptions) {
  const { program, options = {}, environment = {}, clock = systemClock } = given
  const harness = createProcessHarness(t)
  const warnings: string[] = []
  const log = { ...silentLog, warn: (_: object, message: string) => warnings.push(message) }
  const context = { processes: harness.processes, environment: { ...PLAIN_ENVIRONMENT, ...environment }, clock, log }
  const backend = claudeCode.create(createOptions({ bin: program.path, ...options }), context)
  t.after(() => backend.close())
  const run = (text: string, turn: TurnOverrides = {}, signal = new AbortController().signal) =>
    listEvents(backend.run(makeTurn({ text, workingDir: harness.dir, conversationId: 'c1', ...turn }), signal))
  return { ...harness, backend, run, warnings, alive: () => markedPids(`${harness.owner}:`).length }
}

export const replyOf = (events: readonly BackendEvent[]): string => {
  const end = events.at(-1)
  assert.ok(end?.type === 'done', end?.type === 'failed' ? end.error.message : 'no end')
  return end.parts.map((part) => part.text ?? '').join('')
}
export const errorOf = (events: readonly BackendEvent[]): MoleculeError => {
  const end = events.at(-1)
  assert.ok(end?.type === 'failed', 'the turn did not fail')
  return end.error
}
export const tokenOf = (events: readonly BackendEvent[]): string => {
  const session = events.findLast((event) => event.type === 'session')
  assert.ok(session !== undefined)
  return session.token
}

export interface AgentStart {
  readonly pid: number
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly files: { readonly systemPrompt?: string; readonly mcp?: string }
}

/** What each process of the program was started with, in order. */
export const startsOf = (program: FakeProgram): readonly AgentStart[] =>
  readFileSync(join(program.dir, 'starts.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
