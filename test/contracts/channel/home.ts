/** Part of the channel contract: what an agent, a schedule and the platform say by themselves, and what they do not say. */
import assert from 'node:assert/strict'
import { symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Place } from '../../../src/doors/chat/channel.ts'
import type { TeamCall } from '../../fakes/mcp/team-client.ts'
import { replyText } from '../../harness/platform.ts'
import { waitUntil } from '../../harness/wait.ts'
import { ADA, type ChannelUnderTest, type ChatOptions, EVE, type OpenChat, openChat } from './open-chat.ts'

const CLIENT = join(import.meta.dirname, '../../fakes/mcp/team-client.ts')
const AGENT = `exec '${process.execPath}' '${CLIENT}'`
/** With the token of its turn. */
const agent = (cmd: string): ChatOptions => ({
  workspace: { runtime: 'exec', runtime_config: { cmd, pass_meta: 'true', timeout: '100s' } },
})
/** Makes the MCP calls that its message has as JSON, and answers with their results. */
const CALLER = agent(AGENT)

/** Delegates its first message and does not wait; its second message is the result. */
const DELEGATOR = `text=$(cat); case "$text" in
  *painted*) printf 'the result: %s' "$text" ;;
  *) a2a delegate helper 'a wall' --async >/dev/null && printf 'it is begun' ;;
esac`

const script = (...calls: readonly TeamCall[]) => JSON.stringify({ calls })
const tell = (message: string): TeamCall => ({ tool: 'send_message_to_user', arguments: { message } })
const clockText = (ms: number) => new Date(ms).toISOString().slice(11, 16)
const HOUR_MS = 3600_000

export function channelHomeTests(under: ChannelUnderTest): void {
  const { personId = (id: string) => id } = under
  const open = (t: TestContext, options?: ChatOptions) => openChat(t, under, options)
  /** Of Eve. */
  const setHome = async (chat: OpenChat, place: Place, argument?: string) => {
    const answer = await chat.service.command({ place, author: EVE, name: 'home', ...(argument && { argument }) })
    assert.match(answer, /home chat/)
    return answer
  }
  const shows = (chat: OpenChat, place: Place, text: string) =>
    waitUntil(
      () => chat.texts(place).includes(text),
      () => `${text} in ${JSON.stringify(chat.texts(place))}; ${chat.platform.output().slice(-2000)}`,
    )
  /** What the agent is told of its calls. */
  const resultOf = async (chat: OpenChat, workspaceId: string, ...calls: readonly TeamCall[]) => {
    const task = await chat.platform.send(workspaceId, script(...calls))
    return (JSON.parse(replyText(task) ?? '[]') as { text: string }[]).map(({ text }) => text).join('\n')
  }

  test('GW-17 an agent writes to the chat it talks in, and from elsewhere to the home chat of the owner', async (t) => {
    const chat = await open(t, CALLER)
    const place = chat.service.newPlace('direct')
    chat.service.say({ place, author: ADA, text: script(tell('half of it is done')) })
    const [first, answer = ''] = await chat.answers(place, 2)
    assert.equal(first, 'half of it is done')
    assert.match(answer, /shown in the activity, and sent to the chat of this conversation/)
    assert.match(await resultOf(chat, chat.workspaceId, tell('lost')), /went to no chat: no person has a home chat/)
    await chat.makeOwner(EVE)
    const home = chat.service.newPlace('direct')
    await setHome(chat, home)
    assert.match(await resultOf(chat, chat.workspaceId, tell('it is *done*')), /sent to Eve's home chat\./)
    await waitUntil(() => chat.texts(home).some((text) => /it is .?done/.test(text)), 'the home chat gets it')
    const other = await chat.platform.exec(AGENT, { name: 'helper', runtime_config: { pass_meta: 'true' } })
    await resultOf(chat, other, tell('beside'))
    await waitUntil(
      () => chat.texts(home).some((text) => /helper:.* beside/.test(text)),
      () => JSON.stringify(chat.texts(home)),
    )
    assert.match(
      await chat.service.command({ place: home, author: EVE, name: 'home', argument: 'off' }),
      /no home chat any/,
    )
    assert.match(await resultOf(chat, chat.workspaceId, tell('late')), /went to no chat/)
    assert.ok(!chat.texts(place).join().includes('late'))
  })

  test('GW-17 in quiet hours a home chat gets answers but nothing else; what waits comes when they end, also after a restart', async (t) => {
    const chat = await open(t, CALLER)
    await chat.makeOwner(EVE)
    const home = chat.service.newPlace('direct')
    const refused = await chat.service.command({ place: home, author: EVE, name: 'home', argument: 'at night' })
    assert.match(refused, /22:00-07:00 Europe\/Berlin/)
    const hours = `${clockText(Date.now() - 2 * HOUR_MS)}-${clockText(Date.now() + 2 * HOUR_MS)} UTC`
    assert.match(await setHome(chat, home, hours), /only what a running turn waits for/)
    assert.match(await resultOf(chat, chat.workspaceId, tell('good night')), /quiet hours now and gets it after them/)
    chat.service.say({ place: home, author: EVE, text: script() })
    await shows(chat, home, '[]')
    assert.equal(await chat.platform.stop(), 0)
    await chat.start()
    chat.service.say({ place: home, author: EVE, text: script(tell('you asked')) })
    await shows(chat, home, 'you asked')
    assert.ok(!chat.texts(home).includes('good night'))
    await setHome(chat, home)
    await shows(chat, home, 'good night')
    assert.equal(chat.texts(home).filter((text) => text === 'good night').length, 1)
  })

  test('GW-17 PL-17 an agent sends a file at once; and no file that is really in another folder', async (t) => {
    const chat = await open(t, CALLER)
    const { body: workspace } = await chat.platform.request('GET', `/workspaces/${chat.workspaceId}`)
    await writeFile(join(workspace.working_dir, 'plan.txt'), 'the plan')
    await symlink('/etc/hostname', join(workspace.working_dir, 'link.txt'))
    const send = (path: string): TeamCall => ({ tool: 'send_file', arguments: { path, caption: 'see' } })
    const place = chat.service.newPlace('direct')
    chat.service.say({ place, author: ADA, text: script(send('plan.txt'), send('link.txt'), send('../config.yaml')) })
    const answer = (await chat.answers(place, 2))[1] ?? ''
    assert.match(answer, /plan\.txt is read, and sent to the chat of this conversation/)
    assert.equal(answer.match(/is not in the working folder/g)?.length, 2)
    const files = chat.service.written(place).flatMap((message) => message.files)
    assert.deepEqual(
      files.map(({ name, content }) => [name, Buffer.from(content).toString()]),
      [['plan.txt', 'the plan']],
    )
    assert.equal(chat.texts(place)[0], 'see')
  })

  test('GW-17 TW-3 the answer to the result of a delegation reaches the chat that the parent came from', async (t) => {
    const chat = await open(t, agent(DELEGATOR))
    const helper = await chat.platform.exec('sleep 1; printf "painted: "; cat', {
      name: 'helper',
      parent_id: chat.workspaceId,
    })
    assert.ok(helper)
    const place = chat.service.newPlace('direct')
    chat.service.say({ place, author: ADA, text: 'paint it' })
    const [first, second = ''] = await chat.answers(place, 2)
    assert.equal(first, 'it is begun')
    assert.match(second, /the result: .*painted: a wall/s)
    assert.equal(chat.texts(place).length, 2)
  })

  test('SC-1 GW-17 a schedule reports to the home chats of the owners or to a chat, and NO_REPLY is silent', async (t) => {
    const chat = await open(t, { cmd: 'cat' })
    await chat.makeOwner(EVE)
    const [home, group] = [chat.service.newPlace('direct'), chat.service.newPlace('group')]
    const runOf = async (text: string, reportTo: string) => {
      const body = { cron: '0 0 1 1 *', text, report_to: reportTo }
      const { body: made } = await chat.platform.request('POST', `/workspaces/${chat.workspaceId}/schedules`, body)
      assert.equal(made.report_to, reportTo, JSON.stringify(made))
      const { body: run } = await chat.platform.request('POST', `/schedules/${made.id}/run`)
      return run.task_id as string
    }
    const delivered = async (taskId: string) =>
      (await chat.platform.request('GET', `/messages/${taskId}/story`)).body.deliveries as {
        state: string
        error?: string
      }[]
    const early = await runOf('too early', 'owners')
    await waitUntil(async () => (await delivered(early))[0]?.state === 'failed', 'no person has a home chat')
    assert.match((await delivered(early))[0]?.error ?? '', /no person has a home chat/)
    await setHome(chat, home)
    await runOf('the report', 'owners')
    await shows(chat, home, 'the report')
    await runOf('for you', `${under.kind}/@${personId(EVE.id)}`)
    await shows(chat, home, 'for you')
    // A service tells the bot of a group that it is in by its first message.
    chat.service.say({ place: group, author: EVE, text: 'hello', mentions: true })
    await chat.answers(group, 1)
    await runOf('for all', `${under.kind}/${group.id}`)
    await shows(chat, group, 'for all')
    const silent = await runOf('NO_REPLY', 'owners')
    await waitUntil(async () => (await delivered(silent))[0]?.state === 'silent', 'the story says that it is silent')
    await runOf('last', 'owners')
    await shows(chat, home, 'last')
    assert.ok(!/NO_REPLY|too early/.test(chat.texts(home).join()))
  })

  test('GW-17 an answer of exactly NO_REPLY is silent in a group, and the message is marked as done', async (t) => {
    const chat = await open(t, { cmd: 'cat' })
    const group = chat.service.newPlace('group')
    const id = chat.service.say({ place: group, author: ADA, text: 'NO_REPLY', mentions: true })
    await waitUntil(() => chat.service.reaction(group, id) === 'done', 'the message is marked as done')
    chat.service.say({ place: group, author: ADA, text: 'reply', mentions: true })
    assert.deepEqual(await chat.answers(group, 1), ['reply'])
    const direct = chat.service.newPlace('direct')
    chat.service.say({ place: direct, author: ADA, text: 'NO_REPLY' })
    assert.match((await chat.answers(direct, 1))[0] ?? '', /^NO.{0,2}REPLY$/)
  })
}
