/** Conversations as a chat shows them: their list, and the pages of one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lease, Outcome } from '../../../../src/inbox/worker.ts'
import { readChatPage } from '../../../../src/views/chat-page.ts'
import { type ConversationsQuery, readConversations } from '../../../../src/views/conversations.ts'
import { readPendingAsks } from '../../../../src/views/needs/pending-asks.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { COPIED_TEXT, copyMessages } from '../../../harness/stores/many-messages.ts'
import { done, failure, hasCode, type InboxHarness } from '../harness.ts'

const PAGE = { limit: 10, detail: false }
type Finality = (Outcome & { type: 'done' })['finality']
const ended = (text: string, finality: Finality): Outcome => ({
  ...(done(text) as Outcome & { type: 'done' }),
  finality,
})
const asking = (question: string) => ended(question, 'input_required')

export function chatTests(harness: InboxHarness): void {
  listTests(harness)
  messageTests(harness)
}

function listTests(harness: InboxHarness): void {
  const say = (id: string, [contextId, text]: readonly [string, string], outcome = done('ok')) =>
    harness.run(letterTo(id, { contextId, text }), outcome)
  const list = (workspaceId: string, query: Partial<ConversationsQuery> = {}) =>
    readConversations(harness.local.store, { workspaceId, limit: 100, ...query })
  /** The context ids of all pages, page by page. */
  const pages = async (workspaceId: string, query: Partial<ConversationsQuery>) => {
    const found: string[][] = []
    for (let after: string | undefined; ; ) {
      const { conversations, next } = await list(workspaceId, { ...query, ...(after !== undefined && { after }) })
      found.push(conversations.map(({ context_id }) => context_id))
      after = next
      if (after === undefined) return found
    }
  }

  test('CV-2 conversations come once each, the last changed first, with author, title, state and size', async () => {
    const id = await harness.workspace()
    await say(await harness.workspace(), ['elsewhere', 'hello'])
    await say(id, ['a', 'paint\n it'])
    await harness.run(letterTo(id, { contextId: 'b', principal: 'token:1', text: 'other' }), { type: 'dead', failure })
    await say(id, ['a', 'second'], asking('which colour?'))
    const { conversations, next } = await list(id)
    const shown = conversations.map(({ context_id, principal, title, state, messages, sender }) => [
      ...[context_id, principal, title, state, messages, sender?.name],
    ])
    assert.deepEqual(shown, [
      ['a', 'people', 'paint it', 'waiting_for_you', 2, 'admin'],
      ['b', 'token:1', 'other', 'failed', 1, 'admin'],
    ])
    assert.equal(next, undefined)
  })

  test('CV-2 the title of a conversation is short; a large message has its size instead', async () => {
    const id = await harness.workspace()
    for (const given of ['x'.repeat(80), 'x'.repeat(81), ' ', 'x'.repeat(16 * 1024)])
      await harness.local.reception.admit(letterTo(id, { text: given }))
    const titles = (await list(id)).conversations.map(({ title }) => title)
    const expected = ['x'.repeat(80), `${'x'.repeat(79)}…`, 'a message without text', 'a message of 17 KB']
    assert.deepEqual(titles, expected.toReversed())
  })

  test('CV-2 a page of conversations ends at its limit and the next one goes on, also where all changed at once', async () => {
    const id = await harness.workspace()
    for (const contextId of ['a', 'b', 'c', 'd']) await say(id, [contextId, 'hello'])
    await harness.sql('update tasks set updated_at = 1000 where workspace_id = $1', id)
    assert.deepEqual(await pages(id, { limit: 3 }), [['d', 'c', 'b'], ['a']])
  })

  test('CV-2 a page of conversations looks at 500 tasks, and the reader goes on from there', async () => {
    const id = await harness.workspace()
    const { taskId } = await say(id, ['newest', COPIED_TEXT])
    await copyMessages(harness.store, { taskId, count: 600, after: 20_000 })
    const found = await pages(id, {})
    assert.deepEqual([found.length, found[0]?.[0]], [2, 'newest'])
    assert.ok((found[0]?.length ?? 0) <= 51 && new Set(found.flat()).size === 61 && found.flat().length === 61)
  })

  test('CV-2 a search of conversations finds words of messages and replies in any case, and no field names', async () => {
    const id = await harness.workspace()
    await say(id, ['plain', 'Paint the House'])
    await say(id, ['reply', 'none'], done('The house is 100% "done"'))
    await say(id, ['other', 'ÄPFEL and snake_case'], done('100 of snakeXcase'))
    const found = async (search: string) => (await pages(id, { search })).flat().join(' ')
    for (const [search, expected] of [
      ...[['HOUSE', 'reply plain'] as const, ['100%', 'reply'] as const, ['"done"', 'reply'] as const],
      ...[['snake_case', 'other'] as const, ['äpfel', 'other'] as const, ['messageId', ''] as const],
    ])
      assert.equal(await found(search), expected, search)
  })

  test('CV-2 a search of conversations reads the last 50 messages of each, no large text, and 4 MiB for a page', async () => {
    const id = await harness.workspace()
    for (const given of ['first', 'second', `large ${'x'.repeat(32 * 1024)}`, ...Array(48).fill('filler')])
      await harness.local.reception.admit(letterTo(id, { contextId: 'c', text: given }))
    const found = async (search: string) => (await pages(id, { search })).flat()
    assert.deepEqual([await found('first'), await found('second'), await found('large')], [[], ['c'], []])
    const heavy = await harness.workspace()
    for (const contextId of ['needle', 'b', 'c', 'd'])
      await say(heavy, [contextId, contextId], done('y'.repeat(1_500_000)))
    assert.deepEqual(await pages(heavy, { search: 'needle' }), [[], ['needle']])
  })
}

function messageTests(harness: InboxHarness): void {
  const read = (workspaceId: string, conversation: string, more: object = {}) =>
    readChatPage(harness.local.store, { workspaceId, conversation, ...PAGE, ...more })
  const message = async ({ workspaceId, conversationId, messageId }: Lease, more: object = {}) => {
    const { messages } = await read(workspaceId, conversationId, more)
    return messages.find((each) => each.id === messageId) ?? assert.fail(`no message ${messageId}`)
  }

  test('CV-2 a chat comes in pages from its end, the oldest message of a page first, and says where the log stands', async () => {
    const id = await harness.workspace()
    const other = await harness.workspace()
    await harness.run(letterTo(id, { contextId: 'secret', principal: 'token:1' }), done('of a program'))
    const elsewhere = await harness.run(letterTo(other, { contextId: 'c2' }), done('elsewhere'))
    for (let n = 0; n < 4; n++) await harness.run(letterTo(id, { contextId: 'c' }), done('ok'))
    const paged = async (more: object) => {
      const { messages, before, has_newer: hasNewer } = await read(id, 'c', more)
      return [messages.map(({ n }) => n), before, hasNewer]
    }
    assert.deepEqual(await paged({}), [[1, 2, 3, 4], undefined, false])
    assert.deepEqual(await paged({ limit: 2 }), [[3, 4], 3, false])
    assert.deepEqual(await paged({ limit: 2, before: 3 }), [[1, 2], undefined, true])
    const { principal, seq } = await read(id, 'c')
    assert.deepEqual([principal, seq], ['people', (await harness.logs.heads()).get(id)])
    for (const unknown of [elsewhere.conversationId, 'c2', 'secret', 'none'])
      await assert.rejects(read(id, unknown), hasCode('not_found'))
  })

  test('CV-2 an answered message has its times, its reply, what it cost and how many turns were lost', async () => {
    const id = await harness.workspace()
    const { reception, inbox } = harness.local
    await reception.admit(letterTo(id, { text: 'hello', messageId: 'mine' }))
    await harness.withWorker(id, (worker) => worker.lease())
    await harness.newInbox().recover()
    const lease = await harness.withWorker(id, async (worker) => {
      const again = await worker.lease()
      await inbox.settle(again, { ...done('hi'), usage: { costUsd: 0.5, durationMs: 4 } })
      return again
    })
    const { sent_at, started_at = '', ended_at = '', duration_ms, usage, sender, ...shown } = await message(lease)
    assert.ok(sent_at <= started_at && started_at <= ended_at)
    assert.equal(duration_ms, Date.parse(ended_at) - Date.parse(started_at))
    assert.deepEqual([usage?.turns, usage?.cost_usd, sender.name], [1, 0.5, 'admin'])
    assert.deepEqual(JSON.parse(JSON.stringify(shown)), {
      id: lease.messageId,
      task_id: lease.taskId,
      n: 1,
      sender_message_id: 'mine',
      text: 'hello',
      attachments: [],
      state: 'answered',
      interruptions: 1,
      reply: { text: 'hi', partial: false, artifacts: [] },
      tools: [],
    })
  })

  test('CV-2 a failed message has its reason, its detail only for the owner, and says whether a person has handled it', async () => {
    const id = await harness.workspace()
    const dead: Outcome = { type: 'dead', failure: { ...failure, sentence: 'the program failed', details: {} } }
    const [first, second, third] = [
      await harness.run(letterTo(id), dead),
      await harness.run(letterTo(id), dead),
      await harness.run(letterTo(id), dead),
    ]
    const { state, reason, code, detail, handled } = await message(first)
    assert.deepEqual([state, reason, code, detail, handled], ['failed', 'the program failed', 'exit', undefined, false])
    assert.equal((await message(first, { detail: true })).detail, failure.message)
    await harness.local.deadLetters.discard(id, second.messageId)
    const replayedAs = await harness.local.deadLetters.replay(id, third.messageId)
    const settled = [await message(second), await message(third)]
    assert.deepEqual(
      settled.map((each) => [each.handled, each.replayed_as]),
      [
        [true, undefined],
        [true, replayedAs],
      ],
    )
  })

  test('CV-2 a queued message says its place, why it waits and when it is tried again', async () => {
    const id = await harness.workspace()
    const { reception, inbox } = harness.local
    await harness.sql(
      `insert into presence (workspace_id, registered_at, heard_at, report) values ($1, now_ms(), now_ms(), '{}')`,
      id,
    )
    await harness.withWorker(id, async (worker) => {
      for (let n = 0; n < 3; n++) await reception.admit(letterTo(id, { contextId: 'c' }))
      const lease = await worker.lease()
      const shown = async () =>
        (await read(id, 'c')).messages.map(({ state, place, reason, next_try_at }) => [
          ...[state, place, reason?.replace(lease.messageId, 'ID'), next_try_at !== undefined],
        ])
      const behind = 'waiting behind message ID of the same conversation'
      assert.deepEqual(await shown(), [
        ['running', undefined, undefined, false],
        ['queued', 1, behind, false],
        ['queued', 2, behind, false],
      ])
      const retry = { type: 'retry', failure, reason: 'failure', interrupted: false } as const
      await inbox.settle(lease, { ...retry, afterMs: 60_000 })
      const [head, next] = await shown()
      assert.deepEqual(head, ['parked', 0, failure.message, true])
      assert.deepEqual(next, ['queued', 1, `${behind}, next try in 1 min`, false])
      await reception.admit(letterTo(id, { contextId: 'd' }))
      const limited = await worker.lease()
      await inbox.settle(limited, { ...retry, afterMs: 60_000, parked: true })
      assert.equal((await message(limited)).state, 'rate_limited')
    })
  })

  test('CV-2 a queued message says that its workspace is offline or paused', async () => {
    const id = await harness.workspace()
    await harness.local.reception.admit(letterTo(id, { contextId: 'c' }))
    const shown = async () => (await read(id, 'c')).messages.map(({ reason, workspace_is }) => [reason, workspace_is])
    assert.deepEqual(await shown(), [['waiting: the workspace is offline (it has never connected)', 'offline']])
    await harness.sql('update workspace_load set paused = 1 where workspace_id = $1', id)
    assert.deepEqual(await shown(), [['waiting: the workspace is paused', 'paused']])
  })

  test('CV-2 only the newest message of a task shows what the task says', async () => {
    const id = await harness.workspace()
    const first = await harness.run(letterTo(id), asking('which colour?'))
    const { taskId } = first
    assert.deepEqual(
      [(await message(first)).state, (await message(first)).reason],
      ['waiting_for_you', 'which colour?'],
    )
    const second = await harness.run(letterTo(id, { taskId }), asking('how red?'))
    const shown = [await message(first), await message(second)]
    assert.deepEqual(
      shown.map(({ state, reason }) => [state, reason]),
      [
        ['answered', undefined],
        ['waiting_for_you', 'how red?'],
      ],
    )
    const refused = await harness.run(letterTo(id), ended('not for me', 'rejected'))
    assert.equal((await message(refused)).state, 'failed', 'the agent refused it')
  })

  test('CV-2 AG-16 a running message shows its open permission ask, and no question', async () => {
    const id = await harness.workspace()
    const { reception, inbox, pendingAsks } = harness.local
    await harness.withWorker(id, async (worker) => {
      await reception.admit(letterTo(id))
      const lease = await worker.lease()
      await inbox.ask(lease, { kind: 'permission', id: '1', parts: [], tool: 'Bash', subject: 'make' })
      const [pending] = (await readPendingAsks(harness.local.store, { workspaceId: id })).pending
      const { ask, state } = await message(lease)
      assert.deepEqual([state, ask?.id, ask?.tool, ask?.subject], ['waiting_for_you', pending?.id, 'Bash', 'make'])
      assert.ok((ask?.expires_at ?? '') > (ask?.asked_at ?? ''))
      await pendingAsks.answer(pending?.id ?? '', 'allowed', { name: 'Ana', principal: 'people', door: 'http' })
      assert.equal((await message(lease)).ask, undefined)
      await inbox.ask(lease, { kind: 'question', id: '2', parts: [{ text: 'why?' }] })
      const asked = await message(lease)
      assert.deepEqual([asked.state, asked.ask], ['waiting_for_you', undefined])
      await inbox.settle(lease, done('ok'))
    })
  })

  test('CV-2 a message that was cancelled has its end at once, also while its processes are being stopped', async () => {
    const id = await harness.workspace()
    const { reception, inbox } = harness.local
    await harness.withWorker(id, async (worker) => {
      const { taskId } = await reception.admit(letterTo(id))
      const lease = await worker.lease()
      const shown = async () => {
        const { state, started_at, ended_at } = await message(lease)
        return [state, started_at !== undefined, ended_at !== undefined]
      }
      assert.deepEqual(await shown(), ['running', true, false])
      await reception.cancel(taskId)
      assert.deepEqual(await shown(), ['stopped', true, true])
      assert.equal((await worker.next()).type, 'stop')
      await inbox.settle(lease, { type: 'stopped' })
      assert.deepEqual(await shown(), ['stopped', true, true])
    })
  })
}
