/** What a chat shows of a running turn: its tools, and what it has said so far. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lease, Outcome, TurnEvent } from '../../../../src/inbox/worker.ts'
import { diffOfFile } from '../../../../src/protocol/file-diff.ts'
import { readChatPage } from '../../../../src/views/chat-page.ts'
import { readConversations } from '../../../../src/views/conversations.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { done, failure, type InboxHarness } from '../harness.ts'

const PAGE = { limit: 10, detail: false }
const tool = (name: string, state: 'started' | 'finished' | 'failed', subject?: string): TurnEvent => ({
  type: 'tool',
  name,
  state,
  ...(subject !== undefined && { subject }),
})
const said = (delta: string): TurnEvent => ({ type: 'text', delta })

export function chatTurnTests(harness: InboxHarness): void {
  const messagesOf = async ({ workspaceId, conversationId }: Lease) =>
    (await readChatPage(harness.local.store, { workspaceId, conversation: conversationId, ...PAGE })).messages
  /** A running turn, one row of the log for each event, and one second between two rows. */
  const withTurn = async (work: (lease: Lease, append: (...events: TurnEvent[]) => Promise<void>) => Promise<void>) => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      await harness.local.reception.admit(letterTo(id))
      const lease = await worker.lease()
      let from = 0
      await work(lease, async (...events) => {
        for (const event of events) await harness.local.inbox.append(lease, { from: ++from, events: [event] })
      })
      await harness.local.inbox.settle(lease, done('hello'))
    })
  }
  /** The tools of the first message, as name, subject, state, time and wait in seconds. */
  const toolsOf = async (lease: Lease) => {
    await harness.sql('update events set at_ms = 1000 * seq where workspace_id = $1', lease.workspaceId)
    const [message] = await messagesOf(lease)
    return message?.tools.map(({ name, subject, state, duration_ms, waited_ms }) => [
      ...[name, subject, state, duration_ms, waited_ms],
    ])
  }

  test('CV-2 a tool has the end with its name and subject, and the time that it took', async () => {
    await withTurn(async (lease, append) => {
      await append(tool('Bash', 'started', 'a'), tool('Bash', 'started', 'b'), tool('Read', 'started', 'a'))
      await append(tool('Bash', 'finished', 'a'), tool('Bash', 'failed'), tool('Bash', 'finished', 'a'))
      await append(tool('Edit', 'started'), tool('Edit', 'finished', 'c'))
      assert.deepEqual(await toolsOf(lease), [
        ['Bash', 'a', 'finished', 3000, undefined],
        ['Bash', 'b', 'failed', 3000, undefined],
        ['Read', 'a', 'started', undefined, undefined],
        ['Bash', 'a', 'finished', undefined, undefined],
        ['Edit', undefined, 'started', undefined, undefined],
        ['Edit', 'c', 'finished', undefined, undefined],
      ])
    })
  })

  test('CV-2 the time of a tool is without the time that a person took to answer', async () => {
    await withTurn(async (lease, append) => {
      await append(tool('Bash', 'started', 'make'))
      await harness.local.inbox.ask(lease, { kind: 'question', id: 'q', parts: [{ text: 'may I?' }] })
      await harness.sql('update events set at_ms = at_ms - 60000 where workspace_id = $1', lease.workspaceId)
      await harness.local.reception.admit(letterTo(lease.workspaceId, { taskId: lease.taskId }))
      await append(tool('Bash', 'finished', 'make'))
      const [ended] = (await messagesOf(lease))[0]?.tools ?? []
      assert.ok((ended?.duration_ms ?? 60_000) < 30_000, `${ended?.duration_ms} ms`)
    })
  })

  test('CV-9 what a turn asks is shown at its message; the message that answered it keeps its question', async () => {
    await withTurn(async (lease) => {
      const { inbox, reception, store } = harness.local
      const { workspaceId, taskId } = lease
      const shown = async () =>
        (await messagesOf(lease)).map(({ state, reason, ask, answers }) => [state, reason, ask?.tool, answers])
      const listed = async () =>
        (await readConversations(store, { workspaceId, limit: 1 })).conversations.map(({ state }) => state)
      await inbox.ask(lease, { kind: 'question', id: 'q1', parts: [{ text: 'which size?' }] })
      await reception.admit(letterTo(workspaceId, { taskId, text: '32' }))
      const answered = ['answered', undefined, undefined, 'which size?']
      assert.deepEqual(await shown(), [['running', undefined, undefined, undefined], answered])
      assert.deepEqual(await listed(), ['running'])
      await inbox.ask(lease, { kind: 'question', id: 'q2', parts: [{ text: 'which colour?' }] })
      assert.deepEqual(await shown(), [['waiting_for_you', 'which colour?', undefined, undefined], answered])
      assert.deepEqual(await listed(), ['waiting_for_you'])
      await reception.admit(letterTo(workspaceId, { taskId, text: 'red' }))
      const permission = {
        kind: 'permission',
        id: 'q3',
        parts: [{ text: 'may I?' }],
        tool: 'Bash',
        subject: 'make',
      } as const
      await inbox.ask(lease, permission)
      const also = ['answered', undefined, undefined, 'which colour?']
      assert.deepEqual(await shown(), [['waiting_for_you', 'may I?', 'Bash', undefined], answered, also])
    })
  })

  test('CV-2 a new attempt has its own tools and its own text, and a message those of its own turns only', async () => {
    const id = await harness.workspace()
    const { reception, inbox } = harness.local
    await harness.withWorker(id, async (worker) => {
      const { taskId } = await reception.admit(letterTo(id))
      const first = await worker.lease()
      await inbox.append(first, { from: 1, events: [tool('One', 'started'), said('wrong')] })
      const retry = { type: 'retry', failure, afterMs: 0, reason: 'failure', interrupted: false } as const
      await inbox.settle(first, retry)
      const again = await worker.lease()
      await inbox.append(again, { from: 1, events: [tool('Two', 'started'), said('right')] })
      const shown = async () =>
        (await messagesOf(again)).map(({ tools, reply }) => [tools.map(({ name }) => name), reply?.text])
      assert.deepEqual(await shown(), [[['Two'], 'right']])
      await inbox.settle(again, { ...done('more?'), finality: 'input_required' } as Outcome)
      await reception.admit(letterTo(id, { taskId }))
      const second = await worker.lease()
      await inbox.append(second, { from: 1, events: [tool('Three', 'started'), said('now')] })
      assert.deepEqual((await shown())[1], [['Three'], 'now'])
      await inbox.settle(second, done('ok'))
    })
  })

  test('CV-2 CV-4 a chat reads 400 rows of the tools of a message and says when there may be more', async () => {
    await withTurn(async (lease, append) => {
      await append(...Array<TurnEvent>(398).fill(tool('Read', 'finished')))
      const counted = async () => {
        const [message] = await messagesOf(lease)
        return [message?.tools.length, message?.more_tools]
      }
      assert.deepEqual(await counted(), [398, undefined], 'the beginning of the turn is a row too')
      await append(...Array<TurnEvent>(3).fill(tool('Read', 'finished')))
      assert.deepEqual(await counted(), [399, true])
    })
  })

  test('CV-2 the tools of the newest messages are shown within the bytes of a page', async () => {
    const id = await harness.workspace()
    const { reception, inbox } = harness.local
    const lease = await harness.withWorker(id, async (worker) => {
      for (let n = 1; ; n++) {
        await reception.admit(letterTo(id, { contextId: 'c' }))
        const one = await worker.lease()
        await inbox.append(one, { from: 1, events: [tool('Edit', 'finished', 'x'.repeat(250_000))] })
        await inbox.settle(one, done('ok'))
        if (n === 5) return one
      }
    })
    const shown = (await messagesOf(lease)).map(({ tools, more_tools }) => [tools.length, more_tools])
    assert.deepEqual(shown, [[0, true], ...Array.from({ length: 4 }, () => [1, undefined])])
  })

  test('CV-2 a running turn shows what it has said so far and its artifacts, up to the bytes of a page', async () => {
    await withTurn(async (lease, append) => {
      const reply = async () => (await messagesOf(lease))[0]?.reply
      assert.equal(await reply(), undefined)
      const artifact = { artifactId: 'a1', parts: [{ text: 'file' }] }
      await append({ type: 'artifact', artifact, append: false, lastChunk: true })
      await append(said('he'), said('llo'))
      const shown = { id: 'a1', name: undefined, description: undefined, text: 'file', files: [] }
      assert.deepEqual(await reply(), { text: 'hello', partial: true, artifacts: [shown] })
      await append(...Array<TurnEvent>(5).fill(said('x'.repeat(250_000))))
      assert.equal(await reply(), undefined, 'the reader follows the log instead')
    })
  })

  test('CV-2 CV-4 a chat has the tools of a message with their diffs, and says when there are more than a page holds', async () => {
    const id = await harness.workspace()
    const { reception, inbox } = harness.local
    await harness.withWorker(id, async (worker) => {
      await reception.admit(letterTo(id))
      const lease = await worker.lease()
      const diffs = [diffOfFile('a', 'created', 'x\n'.repeat(3000))]
      const readOne = async () => {
        return (await messagesOf(lease))[0] ?? assert.fail('no message')
      }
      const edited = { type: 'tool', name: 'Edit', state: 'finished', diffs } as const
      await inbox.append(lease, { from: 1, events: [edited] })
      const few = await readOne()
      assert.deepEqual([few.tools.map((one) => one.diffs), few.more_tools], [[diffs], undefined])
      for (let from = 2; from <= 40; from++) await inbox.append(lease, { from, events: [edited] })
      const many = await readOne()
      assert.equal(many.more_tools, true)
      assert.ok(many.tools.length > 10 && many.tools.length < 40)
      await inbox.settle(lease, done('hello'))
    })
  })
}
