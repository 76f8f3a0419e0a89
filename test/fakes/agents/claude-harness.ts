/** The claude-code backend on the fake claude. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { claudeCode } from '../../../src/backends/claude-code/claude-code.ts'
import { createOptions } from '../../../src/backends/options.ts'
import { type Clock, systemClock } from '../../../src/clock.ts'
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

/** Creates the backend; it is closed when the test ends. */
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

export interface AgentStart {
  readonly pid: number
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly files: { readonly systemPrompt?: string; readonly mcp?: string }
}

/** The starts of the program, in order. */
export const startsOf = (program: FakeProgram): readonly AgentStart[] =>
  readFileSync(join(program.dir, 'starts.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
