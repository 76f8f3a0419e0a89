/** What an agent knows when its session is gone: the stored conversation in its prompt, and a notice with its answer. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { createFakeProgram, type FakeAgentName } from '../fakes/agents/fake-program.ts'
import { runCommand } from '../harness/command.ts'
import { type PlatformUnderTest, reasonText, replyText, startPlatform, waitForFinalTask } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

const NOTICE =
  "The agent's own memory of this conversation was lost. It got the last 2 messages that the platform has stored."

interface LostSession {
  readonly runtime: string
  readonly agent: FakeAgentName
  readonly options?: Readonly<Record<string, string>>
}

/** One process for each message, so that every turn resumes its session from the disk. */
const AGENTS: readonly LostSession[] = [
  { runtime: 'claude-code', agent: 'claude', options: { mode: 'oneshot' } },
  { runtime: 'codex', agent: 'codex', options: { mode: 'oneshot' } },
  { runtime: 'gemini', agent: 'gemini', options: { mode: 'oneshot' } },
  { runtime: 'opencode', agent: 'opencode', options: { mode: 'oneshot' } },
  { runtime: 'hermes', agent: 'hermes', options: { mode: 'oneshot' } },
]

const programs = new Map(AGENTS.map(({ agent }) => [agent, createFakeProgram(agent)]))
const warmClaude = createFakeProgram('claude')

const forgetSessions = (dir: string) => {
  for (const name of readdirSync(dir)) if (name.startsWith('session-')) rmSync(join(dir, name))
}

describe('sessions', () => {
  let platform: PlatformUnderTest
  before(async () => {
    platform = await startPlatform()
  })
  after(() => platform.dispose())

  const make = async (runtime: string, runtimeConfig: object) => {
    const body = { name: runtime, runtime, runtime_config: runtimeConfig }
    const made = await platform.request('POST', '/workspaces', body)
    assert.equal(made.status, 201, JSON.stringify(made.body))
    return made.body.id as string
  }
  const activityOf = async (id: string) => (await platform.request('GET', `/workspaces/${id}/activity`)).body.activity
  const env = () => ({ MOLECULE_HOME: platform.dataDir, MOLECULE_API_URL: platform.url })

  for (const { runtime, agent, options } of AGENTS) {
    test(`RT-15 RT-5 a lost session of ${runtime} gets the stored conversation, and the answer says so once`, async () => {
      const { path: bin, dir } = programs.get(agent) ?? assert.fail()
      const id = await make(runtime, { bin, ...options })
      const contextId = `lost-${runtime}`
      const first = await platform.send(id, 'my number is 7', { contextId })
      // The fake answers with its prompt, which for some agents begins with the system prompt.
      assert.match(replyText(first) ?? '', /^(<instructions>.*)?my number is 7$/s)
      assert.equal(first.status.message, undefined)
      forgetSessions(dir)
      const second = await platform.send(id, 'what is my number?', { contextId })
      assert.equal(second.status.state, 'TASK_STATE_COMPLETED', JSON.stringify(second.status))
      const prompt = replyText(second) ?? ''
      assert.match(prompt, /Your own memory of this conversation was lost\./)
      assert.match(
        prompt,
        /\nUser: my number is 7\nYou: .*my number is 7\n<\/earlier_conversation>\n\nwhat is my number\?$/s,
      )
      assert.equal(reasonText(second), NOTICE)
      // The new session knows all of it, so nothing is repeated.
      const third = await platform.send(id, 'and now?', { contextId })
      assert.equal(replyText(third), 'and now?')
      assert.equal(third.status.message, undefined)
      const noticed = (await activityOf(id)).filter(({ text }: { text?: string }) => text?.includes(NOTICE))
      assert.deepEqual(
        noticed.map(({ type, task_id }: { type: string; task_id: string }) => [type, task_id]),
        [['status', second.id]],
      )
      const { body } = await platform.request('GET', `/messages/${second.id}/story`)
      assert.match(JSON.stringify(body.steps.at(-1)), /the task is completed: The agent's own memory/)
    })
  }

  test('RT-15 CL-1 agent send and chat show once that the memory was lost', async () => {
    const { path: bin, dir } = programs.get('claude') ?? assert.fail()
    const id = await make('claude-code', { bin, mode: 'oneshot' })
    const send = (text: string) => runCommand(['agent', 'send', id, text, '--context', 'seen'], { env: env() })
    assert.doesNotMatch((await send('one')).err, /note:/)
    forgetSessions(dir)
    const sent = await send('two')
    assert.match(sent.err, /^note: The agent's own memory of this conversation was lost\..*$/m)
    assert.doesNotMatch(sent.out, /The agent's own memory/)
    const chat = (input: string) => runCommand(['chat', id], { env: env(), input })
    assert.equal((await chat('one\n')).err, '')
    forgetSessions(dir)
    const { err } = await chat('two\nthree\n')
    assert.equal(err.split("The agent's own memory of this conversation was lost.").length, 2, err)
  })

  test('RT-15 a cancelled first turn keeps what the user said, and no memory is called lost', async () => {
    const { path: bin, dir } = warmClaude
    const id = await make('claude-code', { bin })
    const message = { messageId: 'cancel-1', role: 'ROLE_USER', parts: [{ text: '!endless my number is 7' }] }
    const params = { message: { ...message, contextId: 'c' }, configuration: { returnImmediately: true } }
    const { task } = (await platform.rpc(id, 'SendMessage', params)).body.result
    await waitUntil(() => existsSync(dir) && readdirSync(dir).some((name) => name.startsWith('session-')))
    await platform.rpc(id, 'CancelTask', { id: task.id })
    assert.equal((await waitForFinalTask(platform, id, task.id)).status.state, 'TASK_STATE_CANCELED')
    const next = await platform.send(id, 'what is my number?', { contextId: 'c' })
    assert.match(
      replyText(next) ?? '',
      /\nUser: !endless my number is 7\nYou: \(The user cancelled this turn before its end\.\)\n/,
    )
    assert.equal(next.status.message, undefined)
  })

  test('RT-15 RT-5 a workspace that changes its backend gives the stored conversation to the new agent', async () => {
    const id = await make('claude-code', { bin: warmClaude.path })
    await platform.send(id, 'my number is 7', { contextId: 'm' })
    const changed = await platform.request('PATCH', `/workspaces/${id}`, {
      runtime: 'codex',
      runtime_config: { bin: programs.get('codex')?.path, mode: 'oneshot' },
    })
    assert.equal(changed.status, 200, JSON.stringify(changed.body))
    const next = await platform.send(id, 'what is my number?', { contextId: 'm' })
    assert.match(replyText(next) ?? '', /\nYou: my number is 7\n/)
    assert.equal(reasonText(next), NOTICE)
  })
})
