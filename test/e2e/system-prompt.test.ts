/** The system prompt of a model agent, as a fake claude gets it from a running platform. */
import assert from 'node:assert/strict'
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { startsOf } from '../fakes/agents/claude-harness.ts'
import { createFakeProgram } from '../fakes/agents/fake-program.ts'
import { type PlatformUnderTest, withPlatform } from '../harness/platform.ts'

const homeOf = ({ dataDir }: PlatformUnderTest, id: string) => join(dataDir, 'workspaces', id.replace('ws_', 'ws-'))

async function create(platform: PlatformUnderTest, body: object): Promise<string> {
  const answer = await platform.request('POST', '/workspaces', body)
  assert.equal(answer.status, 201, JSON.stringify(answer.body))
  return answer.body.id
}

/** A workspace on its own fake claude. `promptOf` sends a message; the system prompt of claude's last start. */
async function createAgent(platform: PlatformUnderTest, body: object = {}) {
  const program = createFakeProgram('claude')
  const id = await create(platform, {
    name: 'agent',
    runtime: 'claude-code',
    runtime_config: { bin: program.path },
    ...body,
  })
  const send = (text: string, contextId = 'c') => platform.send(id, text, { contextId })
  const promptOf = async (text: string) => {
    const { status } = await send(text)
    assert.equal(status.state, 'TASK_STATE_COMPLETED')
    return startsOf(program).at(-1)?.files.systemPrompt ?? ''
  }
  return { id, home: homeOf(platform, id), send, promptOf, starts: () => startsOf(program).length }
}

test(
  'RT-1 the prompt has system-prompt.md, the role, the peers, then IDENTITY.md, USER.md and MEMORY.md',
  withPlatform(async (platform) => {
    const parent = await create(platform, { name: 'lead', role: 'Plans', runtime: 'mock' })
    const agent = await createAgent(platform, { role: 'Writes code', parent_id: parent })
    const sibling = await create(platform, { name: 'reviewer', role: 'Reads\nit', runtime: 'mock', parent_id: parent })
    await create(platform, { name: 'stranger', role: 'Elsewhere', runtime: 'mock' })
    const files = ['system-prompt.md', 'IDENTITY.md', 'USER.md', 'MEMORY.md', 'AGENTS.md', 'CLAUDE.md']
    for (const name of files) writeFileSync(join(agent.home, name), `text of ${name}\n`)
    const prompt = await agent.promptOf('hello')
    const expected = `text of system-prompt.md

Your role: Writes code

Workspaces that you can ask:
- lead (${parent}): Plans
- reviewer (${sibling}): Reads it

<!-- IDENTITY.md -->
text of IDENTITY.md

<!-- USER.md -->
text of USER.md

<!-- MEMORY.md -->
text of MEMORY.md

You run as one of several workspaces of Molecule.`
    assert.ok(prompt.startsWith(expected), prompt)
    assert.ok(!/stranger|AGENTS.md|CLAUDE.md/.test(prompt), prompt)
  }),
)

test(
  'RT-1 a change of system-prompt.md shows in the very next message of a running conversation, and only a change does',
  withPlatform(async (platform) => {
    const agent = await createAgent(platform)
    const file = join(agent.home, 'system-prompt.md')
    writeFileSync(file, 'Answer in French.')
    assert.match(await agent.promptOf('one'), /^Answer in French\./)
    await agent.promptOf('two')
    assert.equal(agent.starts(), 1, 'the session went on with the prompt that it had')
    writeFileSync(file, 'Answer in Dutch..')
    assert.match(await agent.promptOf('!count three'), /^Answer in Dutch\./)
    assert.equal(agent.starts(), 2)
    rmSync(file)
    assert.doesNotMatch(await agent.promptOf('four'), /Dutch/)
    const last = await agent.send('!count five')
    assert.match(last.artifacts?.[0]?.parts[0]?.text ?? '', /^n=5 one\|two/, 'the conversation kept its memory')
  }),
)

test(
  'RT-1 a long file is cut and says so, a folder of that name is no file, an unreadable file is a clear error',
  withPlatform(async (platform) => {
    const agent = await createAgent(platform)
    writeFileSync(join(agent.home, 'MEMORY.md'), 'é'.repeat(20_000))
    mkdirSync(join(agent.home, 'USER.md'))
    const prompt = await agent.promptOf('hello')
    assert.match(prompt, /é\n\[The rest is left out: the file is longer than 16 KiB\.\]/)
    assert.ok(!prompt.includes('USER.md') && !prompt.includes('\uFFFD'))
    // A link to itself cannot be read by any user.
    symlinkSync('system-prompt.md', join(agent.home, 'system-prompt.md'))
    const failed = await agent.send('again', 'other')
    assert.equal(failed.status.state, 'TASK_STATE_FAILED')
    assert.match(JSON.stringify(failed.status), /system-prompt\.md of the workspace cannot be read: ELOOP/)
  }),
)
