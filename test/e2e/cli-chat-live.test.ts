/** `molecule chat` shows its conversation live: what another window, an agent, a schedule and the platform say, by name. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startRemoteAgent } from '../fakes/remote-agent/start.ts'
import { BIN, openTerminal, runCommand } from '../harness/command.ts'
import { createHandWorker } from '../harness/hand-worker.ts'
import { type PlatformUnderTest, sendWithoutWaiting, startPlatform } from '../harness/platform.ts'

const CTRL_C = '\u0003'
const CTRL_D = '\u0004'
/** An agent that calls the tools of its workspace that its message names. */
const TOOL_CALLER = `${process.execPath} ${fileURLToPath(new URL('../fakes/mcp/team-client.ts', import.meta.url))}`

describe('molecule chat shows what others say', () => {
  let platform: PlatformUnderTest
  before(async () => {
    platform = await startPlatform()
  })
  after(() => platform.dispose())

  const env = () => ({ MOLECULE_HOME: platform.dataDir, NO_COLOR: '1' })
  const open = async (t: TestContext, name: string) => {
    const typing = openTerminal(t, ['chat', name], env())
    await typing.waitForScreen(/\/help shows the commands\nyou ›$/)
    return {
      ...typing,
      async leave() {
        typing.type(CTRL_D)
        assert.equal(await typing.ended(), 0)
      },
    }
  }

  test('CL-5 a message from another window and its answer appear; the next start shows both', async (t) => {
    await platform.exec('cat', { name: 'shared' })
    const [one, two] = [await open(t, 'shared'), await open(t, 'shared')]
    one.type('from one\r')
    await one.waitForScreen(/you › from one\nfrom one\nyou ›$/)
    await two.waitForScreen(/commands\nyou › from one\nshared › from one\nyou ›$/)
    two.type('half a li')
    await two.waitForScreen(/you › half a li$/)
    one.type('again\r')
    // What is typed stays below what arrives.
    await two.waitForScreen(/you › again\nshared › again\nyou › half a li$/)
    two.type(CTRL_C)
    await two.waitForScreen(/half a li\nyou ›$/)
    for (const window of [one, two]) await window.leave()
    const later = openTerminal(t, ['chat', 'shared'], env())
    await later.waitForScreen(/you › from one\nshared › from one\nyou › again\nshared › again\n· you talk to shared/)
    later.type(CTRL_D)
    assert.equal(await later.ended(), 0)
  })

  test('CL-5 TW-6 the result of an async delegation comes under the name of its agent, and the answer to it follows', async (t) => {
    await platform.exec('sleep 1; echo three files', { name: 'counter' })
    const work = `${BIN}/a2a delegate --async counter "count" > /dev/null && echo "I asked counter"`
    const cmd = `case "$(cat)" in "The task "*) echo "so it is three";; *) ${work};; esac`
    await platform.exec(cmd, { name: 'boss', runtime_config: { pass_meta: 'true' } })
    const typing = await open(t, 'boss')
    typing.type('how many\r')
    await typing.waitForScreen(
      /you › how many\nI asked counter\ncounter › The task \w+ that you gave to counter is completed\.\n.*three files\n+boss › so it is three\nyou ›$/s,
    )
    await typing.leave()
    // The platform's own message is not the user's in the history either.
    const later = openTerminal(t, ['chat', 'boss'], env())
    await later.waitForScreen(/\ncounter › The task .*\nboss › so it is three\n· you talk to boss/s)
    assert.doesNotMatch(later.screen(), /you › The task/)
    later.type(CTRL_D)
    await later.ended()
  })

  test('CL-5 SC-1 a schedule and its answer appear, and no conversation of another sender does', async (t) => {
    const id = await platform.exec('cat', { name: 'planned' })
    const typing = await open(t, 'planned')
    const body = { name: 'nightly', cron: '0 3 * * *', text: 'check the backups' }
    const { body: schedule } = await platform.request('POST', `/workspaces/${id}/schedules`, body)
    await sendWithoutWaiting(platform, id, 'another conversation')
    const run = await platform.request('POST', `/schedules/${schedule.id}/run`)
    assert.equal(run.status, 202, JSON.stringify(run.body))
    await typing.waitForScreen(/schedule nightly › check the backups\nplanned › check the backups\nyou ›$/)
    assert.doesNotMatch(typing.screen(), /another conversation/)
    await typing.leave()
  })

  test('CL-5 TW-7 a message that the agent sends to people appears while it works', async (t) => {
    await platform.exec(TOOL_CALLER, { name: 'reporter', runtime_config: { pass_meta: 'true' } })
    const typing = await open(t, 'reporter')
    const calls = [{ tool: 'send_message_to_user', arguments: { message: 'half of it is done' } }]
    typing.type(`${JSON.stringify({ transport: 'http', calls })}\r`)
    await typing.waitForScreen(/\nreporter › half of it is done\n.*It is shown in the activity/s)
    await typing.leave()
  })

  test('CL-5 a chat that opens while two messages run or wait shows the answers of both', async (t) => {
    const gate = join(platform.dataDir, 'gate')
    await platform.exec(`text=$(cat); until [ -e ${gate}-$text ]; do sleep 0.1; done; echo "did $text"`, {
      name: 'queued',
    })
    for (const text of ['first', 'second']) {
      const sent = await runCommand(['agent', 'send', 'queued', text, '--async', '--context', 'terminal'], {
        env: env(),
      })
      assert.equal(sent.code, 0, sent.err)
    }
    const typing = openTerminal(t, ['chat', 'queued'], env())
    await typing.waitForScreen(/you › first\nyou › second\n· you talk to queued.*\n· the last message is still running/)
    await writeFile(`${gate}-first`, '')
    await typing.waitForScreen(/queued › did first\n/)
    await writeFile(`${gate}-second`, '')
    await typing.waitForScreen(/did second\n+you ›$/)
    typing.type(CTRL_D)
    assert.equal(await typing.ended(), 0)
  })

  test('CL-5 a question that came by another way is answered by the next message', async (t) => {
    const remote = await startRemoteAgent('1.0')
    t.after(() => remote.stop())
    await platform.request('POST', '/workspaces', { name: 'asker', runtime: 'a2a', url: remote.url })
    const [one, two] = [await open(t, 'asker'), await open(t, 'asker')]
    one.type('ask\r')
    await two.waitForScreen(/you › ask\n· waiting for your answer: which colour\?\nyou ›$/)
    await one.waitForScreen(/waiting for your answer: which colour\?\nyou ›$/)
    two.type('blue\r')
    await two.waitForScreen(/you › blue\n.*blue.*\nyou ›$/s)
    await one.waitForScreen(/you › blue\nasker › you said blue\n/)
    for (const window of [one, two]) await window.leave()
  })

  test('CL-5 CV-9 a chat that opens while a turn asks its second question answers that one', async (t) => {
    const worker = await createHandWorker(platform, { name: 'twice' })
    const send = (text: string, more: object = {}) =>
      platform.rpc(worker.workspaceId, 'SendMessage', {
        message: { messageId: `twice-${text}`, contextId: 'terminal', role: 'ROLE_USER', parts: [{ text }], ...more },
        configuration: { returnImmediately: true },
      })
    const { body } = await send('guide')
    const turn = await worker.lease()
    await turn.ask('which size?')
    await send('large', { taskId: body.result.task.id })
    assert.equal(await worker.nextAnswer(), 'large')
    await turn.ask('which colour?')
    const typing = openTerminal(t, ['chat', 'twice'], env())
    await typing.waitForScreen(/which colour\?.*you ›$/s)
    typing.type('red\r')
    assert.equal(await worker.nextAnswer(), 'red')
    await turn.answer('Here it is.')
    await typing.waitForScreen(/Here it is\.\n+you ›$/)
    typing.type(CTRL_D)
    assert.equal(await typing.ended(), 0)
  })
})
