/**
 * AG-19 on a real CLI: makes the fake model fail in every way of the table and checks what the user sees. Returns the
 * rows that `npm run test:agents` prints. A failure that would be tried again is judged after its first try and then
 * cancelled, so that no row waits.
 */
import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isFinal, type Task } from '../../src/protocol/a2a.ts'
import { type FakeModel, modelPrompts } from '../fakes/agents/fake-model.ts'
import { failurePrompt, PROVIDER_FAILURES } from '../fakes/agents/provider-failures.ts'
import { replyText } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'
import { type AgentHarness, openAgentHarness } from './agent-harness.ts'
import type { Cli } from './clis.ts'
import { type AgentFailure, expectedResult, type FailingCli } from './failure-table.ts'

type FailingProgram = Cli & { readonly name: FailingCli }

export const isFailingCli = (cli: Cli): cli is FailingProgram => cli.name in SESSION_FOLDERS

/** Where each CLI keeps its sessions. */
const SESSION_FOLDERS: Readonly<Record<FailingCli, string>> = {
  claude: '.claude/projects',
  codex: '.codex/sessions',
  gemini: '.gemini/tmp',
  opencode: '.local/share/opencode',
}

/** The conversation whose session will be lost. */
const LOST = 'lost'
const FIRST_TRY_MS_MAX = 180_000
/** The default of a workspace. */
const ATTEMPTS = 4

export interface FailureRow {
  readonly failure: AgentFailure
  readonly category: string
  readonly tries: string
  readonly seconds: number
  readonly sentence: string
}

export async function runFailures(cli: FailingProgram, runtime: string, model: FakeModel): Promise<FailureRow[]> {
  const harness = await openAgentHarness({ cli, runtime, model })
  try {
    const workspace = await harness.workspace({}, { attempts: ATTEMPTS })
    await harness.ask(workspace, modelPrompts.number(1), LOST)
    const rows: FailureRow[] = []
    // In one conversation, on one warm process: a start takes longer than all of these failures.
    for (const failure of PROVIDER_FAILURES) {
      rows.push(await firstTry(harness, { workspace, failure, context: 'failing', text: failurePrompt(failure) }))
    }
    rows.push(await notLoggedIn({ cli, runtime, model, harness }))
    rows.push(await sessionLost(cli.name, harness, workspace))
    for (const { failure, category, tries } of rows) {
      const expected = expectedResult(cli.name, 'session', failure)
      const isRetried = failure === 'session lost' || tries !== '1'
      assert.deepEqual([failure, { category, isRetried }], [failure, expected])
    }
    return rows
  } finally {
    await harness.dispose()
  }
}

interface FirstTryOptions {
  readonly workspace: string
  readonly failure: AgentFailure
  readonly context: string
  readonly text: string
}

/** Sends the message and waits until its first try has failed. */
export async function firstTry(
  harness: AgentHarness,
  { workspace, failure, context, text }: FirstTryOptions,
): Promise<FailureRow> {
  const startMs = performance.now()
  const id = await harness.begin(workspace, text, context)
  let task: Task | undefined
  const hasFailed = async () => {
    const { body } = await harness.platform.rpc(workspace, 'GetTask', { id })
    task = body.result
    return task !== undefined && (isFinal(task.status.state) || categoryOf(task) !== undefined)
  }
  await waitUntil(hasFailed, `the first try of "${failure}" has ended`, FIRST_TRY_MS_MAX)
  const seconds = (performance.now() - startMs) / 1000
  assert.ok(task !== undefined)
  const isOver = isFinal(task.status.state)
  if (!isOver) await harness.platform.rpc(workspace, 'CancelTask', { id })
  const category = categoryOf(task) ?? task.status.state.replace('TASK_STATE_', '').toLowerCase()
  return { failure, category, tries: isOver ? '1' : `1 of ${ATTEMPTS}`, seconds, sentence: sentenceOf(task) }
}

const categoryOf = ({ status }: Task): string | undefined => {
  const category = status.message?.metadata?.['category']
  return typeof category === 'string' ? category : undefined
}

/** The first line: the tests are an admin, who also sees what the program printed. Without the id of the error. */
function sentenceOf(task: Task): string {
  const text = task.status.message?.parts[0]?.text ?? replyText(task) ?? ''
  return (text.split('\n', 1)[0] ?? '').replace(/ \(\w+, err_\w+\)/, '')
}

/** opencode reads its key from its configuration; without a login it does not know the models of a provider. */
async function notLoggedIn({
  cli,
  runtime,
  model,
  harness,
}: {
  readonly cli: Cli
  readonly runtime: string
  readonly model: FakeModel
  readonly harness: AgentHarness
}): Promise<FailureRow> {
  const message = { failure: 'not logged in' as const, context: 'login', text: modelPrompts.answer }
  if (cli.name === 'opencode') {
    const workspace = await harness.workspace({ model: 'openai/gpt-5' }, { attempts: ATTEMPTS })
    return firstTry(harness, { workspace, ...message })
  }
  const locked = await openAgentHarness({ cli, runtime, model, key: '' })
  try {
    const workspace = await locked.workspace({}, { attempts: ATTEMPTS })
    return await firstTry(locked, { workspace, ...message })
  } finally {
    await locked.dispose()
  }
}

/** The files of all sessions are gone when a new process asks for one. The answer comes, and says that memory is lost. */
async function sessionLost(cli: FailingCli, harness: AgentHarness, workspace: string): Promise<FailureRow> {
  await harness.stop()
  await rm(join(harness.home.folder, SESSION_FOLDERS[cli]), { recursive: true, force: true })
  await harness.restart()
  const startMs = performance.now()
  const task = await harness.ask(workspace, modelPrompts.number(2), LOST)
  const seconds = (performance.now() - startMs) / 1000
  assert.equal(task.status.state, 'TASK_STATE_COMPLETED', JSON.stringify(task.status))
  const sentence = task.status.message?.parts.map(({ text }) => text ?? '').join(' ') ?? ''
  assert.match(sentence, /memory of this conversation was lost/)
  return { failure: 'session lost', category: 'session_error', tries: '2', seconds, sentence }
}
