/** The search over all stored messages and answers, and the page of a chat around what it found. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readChatPage } from '../../../../src/views/chat-page.ts'
import { searchMessages } from '../../../../src/views/message-search.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { done, type InboxHarness } from '../harness.ts'

export function searchTests(harness: InboxHarness): void {
  const search = (workspaceId: string, text: string, more: object = {}) =>
    searchMessages(harness.local.store, { workspaceId, text, limit: 50, ...more })

  /** As many messages of one conversation, each answered. */
  const converse = async (id: string, texts: readonly (readonly [message: string, answer: string])[]) => {
    const taskIds: string[] = []
    await harness.withWorker(id, async (worker) => {
      for (const [text, answer] of texts) {
        taskIds.push((await harness.local.reception.admit(letterTo(id, { contextId: 'c', text }))).taskId)
        await harness.local.inbox.settle(await worker.lease(), done(answer))
      }
    })
    return taskIds
  }

  test('CV-11 a search finds every stored message and answer, in any case, and not the names of fields', async () => {
    const id = await harness.workspace()
    const other = await harness.workspace()
    await converse(other, [['needle elsewhere', 'ok']])
    const filler = Array.from({ length: 60 }, (_, index) => [`filler ${index}`, 'ok'] as const)
    const long = `${'x'.repeat(100_000)} an umlaut ÄÖÜ at the end`
    const texts = [
      ['The first NEEDLE, "quoted" 100%', 'ok'],
      ['a question', 'The needle is in this answer'],
      [long, 'ok'],
    ]
    const taskIds = await converse(id, [...(texts as [string, string][]), ...filler])
    const { messages, next } = await search(id, 'needle')
    assert.deepEqual(
      messages.map(({ task_id, found_in, n, excerpt }) => [task_id, found_in, n, excerpt]),
      [
        [taskIds[1], 'answer', 2, 'The needle is in this answer'],
        [taskIds[0], 'message', 1, 'The first NEEDLE, "quoted" 100%'],
      ],
    )
    assert.equal(next, undefined)
    for (const text of ['"quoted" 100%', 'first needle', 'äöü at']) {
      assert.equal((await search(id, text)).messages.length, 1, text)
    }
    for (const text of ['envelope', 'ROLE_USER', '100_', 'needle elsewhere']) {
      assert.equal((await search(id, text)).messages.length, 0, text)
    }
    // A page shows a line break as a space, and people copy what they read.
    const wrapped = await converse(id, [['the first line\n  and the second', 'ok']])
    for (const text of ['first line and the', 'LINE\nAND']) {
      const found = (await search(id, text)).messages
      assert.deepEqual(
        found.map(({ task_id, excerpt }) => [task_id, excerpt]),
        [[wrapped[0], 'the first line and the second']],
        text,
      )
    }
    assert.equal((await search(id, 'firstline')).messages.length, 0)
    const all = await searchMessages(harness.local.store, { text: 'needle elsewhere', limit: 50 })
    assert.deepEqual(
      all.messages.map(({ workspace_id }) => workspace_id),
      [other],
    )
    const pages: string[] = []
    for (let after: string | undefined; ; ) {
      const page = await search(id, 'filler', { limit: 25, ...(after && { after }) })
      pages.push(...page.messages.map(({ excerpt }) => excerpt))
      after = page.next
      if (after === undefined) break
    }
    assert.deepEqual(pages, filler.map(([text]) => text).toReversed())
  })

  test('CV-11 a chat is read around a message, by the conversation or by the message alone', async () => {
    const id = await harness.workspace()
    const taskIds = await converse(
      id,
      Array.from({ length: 30 }, (_, index) => [`message ${index + 1}`, 'ok']),
    )
    const [fifth = '', last = ''] = [taskIds[4], taskIds.at(-1)]
    const read = (conversation: string, at: string) =>
      readChatPage(harness.local.store, { workspaceId: id, conversation, at, limit: 6, detail: false })
    for (const conversation of ['c', fifth]) {
      const page = await read(conversation, fifth)
      assert.deepEqual(
        page.messages.map(({ n }) => n),
        [2, 3, 4, 5, 6, 7],
      )
      assert.deepEqual([page.has_newer, page.before, page.context_id], [true, 2, 'c'])
    }
    const end = await read(last, last)
    assert.deepEqual([end.messages.at(-1)?.n, end.has_newer], [30, false])
    assert.equal((await read('c', 'gone')).messages.at(-1)?.n, 30)
  })
}
