/**
 * AG-19: runs the table of failures (test/agents/failure-table.ts) on outputs that were recorded from the real CLIs, in
 * both modes of each backend, up to the category, the retry and the sentence that the user sees.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { endOf, failureOfRun } from '../../../src/backends/claude-code/outcome.ts'
import { parseLine, parseResult } from '../../../src/backends/claude-code/parse.ts'
import {
  failedEnd,
  NETWORK_WAITS_MAX,
  networkAway,
  requestError,
  waitsForNetwork,
} from '../../../src/backends/codex/outcome.ts'
import { createExecParser, messageOf } from '../../../src/backends/codex/parse.ts'
import type { AcpAgent, SessionListener } from '../../../src/backends/engine/acp/acp-agent.ts'
import { type AcpErrorMeanings, resumeError } from '../../../src/backends/engine/acp/acp-errors.ts'
import { runPrompt } from '../../../src/backends/engine/acp/run-prompt.ts'
import type { AgentOutputParser, AgentOutputParserOptions } from '../../../src/backends/engine/cli/one-shot-agent.ts'
import { RpcError } from '../../../src/backends/engine/json-rpc.ts'
import type { EndEvent, TurnStream } from '../../../src/backends/engine/turn-engine.ts'
import { SENTENCES as GEMINI_SENTENCES } from '../../../src/backends/gemini/outcome.ts'
import { createGeminiParser } from '../../../src/backends/gemini/parse.ts'
import { OPENCODE_ERRORS } from '../../../src/backends/opencode/opencode.ts'
import { createOpencodeParser, failedCallIn } from '../../../src/backends/opencode/parse.ts'
import { failureSentence } from '../../../src/runtime/failure-sentence.ts'
import { type AgentFailure, expectedResult, FAILURES, type FailingCli, type Mode } from '../../agents/failure-table.ts'
import { readSample } from '../../fakes/agents/fake-agent.ts'
import { exited, makeParserOptions } from '../../fakes/agents/line-parsers.ts'

/** What a CLI printed. */
interface Recording {
  // biome-ignore lint/suspicious/noExplicitAny: each CLI has its own shape
  readonly lines: readonly any[]
  readonly log?: readonly string[]
  readonly stderr?: string
  readonly exitCode?: number | null
}

type Replay = (recording: Recording, isResumed: boolean) => EndEvent | Promise<EndEvent>

const SESSION = '11111111-2222-3333-4444-555555555555'
const { facts } = makeParserOptions()
const { nowMs } = facts
const claudeFacts = { ...facts, maxTurns: 25 }

const failed = (error: Extract<EndEvent, { type: 'failed' }>['error']): EndEvent => ({ type: 'failed', error })

const REPLAYS: Readonly<Record<`${FailingCli} ${Mode}`, Replay>> = {
  'claude session': ({ lines }) => {
    const [event] = parseLine(JSON.stringify(lines[0])) ?? []
    assert.ok(event?.type === 'result')
    return endOf(event.result, claudeFacts)
  },
  'claude oneshot': ({ lines, stderr, exitCode }) => {
    const result = parseResult(JSON.stringify(lines[0] ?? null))
    if (result !== undefined) return endOf(result, claudeFacts)
    return failed(failureOfRun(exited(exitCode ?? 1, stderr), '', claudeFacts))
  },
  'codex session': ({ lines }) => {
    const waits = lines.filter(({ method, params }) => method === 'error' && waitsForNetwork(messageOf(params.error)))
    if (waits.length >= NETWORK_WAITS_MAX) return failed(networkAway(messageOf(waits[0].params.error)))
    const { turn, error } = lines.at(-1)?.params ?? lines[0]
    if (turn === undefined) return failed(requestError(new RpcError(error.code, error.message), nowMs))
    return failedEnd({ message: turn.error.message, info: turn.error.codexErrorInfo }, nowMs)
  },
  'codex oneshot': (recording) =>
    runParser(createExecParser({ session: undefined, instructions: '', facts, warn: () => undefined }), recording),
  'gemini session': (recording, isResumed) =>
    runAcp(recording, { isResumed, meanings: { sentences: GEMINI_SENTENCES } }),
  'gemini oneshot': (recording, isResumed) => runParser(createGeminiParser(parserOptions(isResumed)), recording),
  'opencode session': (recording, isResumed) => runAcp(recording, { isResumed, meanings: OPENCODE_ERRORS }),
  'opencode oneshot': (recording, isResumed) => runParser(createOpencodeParser(parserOptions(isResumed)), recording),
}

const parserOptions = (isResumed: boolean): AgentOutputParserOptions =>
  makeParserOptions(isResumed ? { sessionId: SESSION } : {})

function runParser(parser: AgentOutputParser, { lines, log = [], stderr = '', exitCode }: Recording): EndEvent {
  const events = [
    ...log.flatMap((line) => parser.readError?.(line) ?? []),
    ...lines.flatMap((line) => parser.read(JSON.stringify(line))),
  ]
  const end = events.find((event) => event.type === 'done' || event.type === 'failed')
  return end ?? parser.conclude(exited(exitCode ?? 1, stderr), '')
}

/** The agent's answer to `session/prompt`, or to the request before it that failed already. */
async function runAcp(
  { lines, log = [] }: Recording,
  { isResumed, meanings }: { readonly isResumed: boolean; readonly meanings: AcpErrorMeanings },
): Promise<EndEvent> {
  const answer = lines.at(-1)
  const thrown = answer.error && new RpcError(answer.error.code, answer.error.message, answer.error.data)
  if (isResumed) return failed(resumeError(thrown, SESSION, nowMs))
  const listeners = new Map<string, SessionListener>()
  const rpc = {
    notify: () => Promise.resolve(true),
    async request() {
      for (const line of log) {
        const call = failedCallIn(line)
        if (call !== undefined) listeners.get(SESSION)?.callFailed?.(call)
      }
      for (const { params } of lines.slice(0, -1)) listeners.get(SESSION)?.update(params.update)
      if (thrown !== undefined) throw thrown
      return answer.result
    },
  }
  const agent = { rpc, listeners, sessions: new Map(), greeting: Promise.resolve({}) } as unknown as AcpAgent
  const { signal } = new AbortController()
  const stream = { emit: () => undefined, signal } as unknown as TurnStream
  const decide = () => Promise.resolve({ allowed: false, lasting: false })
  const options = {
    backend: 'agent',
    sessionId: SESSION,
    isResumed,
    text: 'x',
    nowMs,
    decide,
    workingDir: '/',
    warn: () => undefined,
    errorMeanings: meanings,
  }
  return (await runPrompt(agent, options, stream)).end
}

const recordings = (cli: FailingCli): Readonly<Record<string, Partial<Record<Mode, Recording>>>> => ({
  ...JSON.parse(readSample(`failures/${cli}.json`)),
  'session lost': LOST_SESSIONS[cli],
})

const fails = (code: number, message: string): Recording => ({ lines: [{ error: { code, message } }] })

const LOST_SESSIONS: Readonly<Record<FailingCli, Record<Mode, Recording>>> = {
  claude: {
    session: { lines: [JSON.parse(readSample('claude/unknown-session.stream-json.jsonl'))] },
    oneshot: { lines: [], stderr: readSample('claude/unknown-session.json-mode.stderr'), exitCode: 1 },
  },
  codex: {
    session: fails(-32600, `no rollout found for thread id ${SESSION}`),
    oneshot: { lines: [], stderr: readSample('codex/unknown-session.stderr'), exitCode: 1 },
  },
  gemini: {
    session: fails(-32603, 'Internal error: Invalid session identifier'),
    oneshot: { lines: [], stderr: readSample('gemini/unknown-session-a.stderr'), exitCode: 42 },
  },
  opencode: {
    session: fails(-32603, 'Internal error: OpenCode service failure'),
    oneshot: { lines: [], stderr: readSample('opencode/unknown-session.stderr'), exitCode: 1 },
  },
}

/** The result as the user sees it. */
function resultOf(end: EndEvent): { category: string; isRetried: boolean; sentence: string } {
  if (end.type === 'done') return { category: end.finality, isRetried: false, sentence: end.parts[0]?.text ?? '' }
  const { category = end.error.code, sentence = end.error.message } = failureSentence(end.error) ?? {}
  return { category, isRetried: end.error.retryable || end.error.code === 'session_lost', sentence }
}

for (const cli of ['claude', 'codex', 'gemini', 'opencode'] as const) {
  const recorded = recordings(cli)
  for (const mode of ['session', 'oneshot'] as const) {
    test(`AG-19 ${cli} ${mode}: each recorded failure has its category, and is tried again only if that can help`, async () => {
      const replay = REPLAYS[`${cli} ${mode}`]
      for (const failure of FAILURES) {
        const recording = recorded[failure]?.[mode]
        assert.ok(recording !== undefined, `${failure} was not recorded`)
        const { sentence, ...result } = resultOf(await replay(recording, failure === 'session lost'))
        assert.deepEqual([failure, result], [failure, expectedResult(cli, mode, failure)])
        // No word of a program or a provider, except the model's own refusal.
        assert.match(sentence, /^[A-Za-z' ]+(\(exit code \d+\))?\.?$/, failure)
      }
    })
  }
}

test('AG-19 every failure of the table is recorded, and every recording is in the table', () => {
  for (const cli of ['claude', 'codex', 'gemini', 'opencode'] as const) {
    assert.deepEqual(Object.keys(recordings(cli)).sort(), ([...FAILURES] as AgentFailure[]).sort())
  }
})

test('AG-19 the page of the backends shows the table', () => {
  const page = readFileSync(new URL('../../../docs/backends/README.md', import.meta.url), 'utf8')
  const rows = page.matchAll(/^\| ([a-z ]+?) +\| `(\w+)` +\| (\w+)/gm)
  const shown = new Map(Array.from(rows, ([, failure, category, again]) => [failure, [category, again !== 'no']]))
  for (const failure of FAILURES) {
    // `claude oneshot` has no exception.
    const { category, isRetried } = expectedResult('claude', 'oneshot', failure)
    assert.deepEqual([failure, shown.get(failure)], [failure, [category, isRetried]])
  }
})
