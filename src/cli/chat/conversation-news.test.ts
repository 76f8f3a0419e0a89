import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ChatMessageView, EMPTY_HISTORY, withNewest } from '../../client/live-conversation.ts'
import type { ActivityView, ChatView } from '../../client/views.ts'
import { systemClock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import { type ChatNews, followNews, type NewsOptions } from './conversation-news.ts'

const AT = '2026-11-16T10:00:00.000Z'

const message = (n: number, more: Partial<ChatMessageView> = {}): ChatMessageView => ({
  id: `m${n}`,
  task_id: `t${n}`,
  n,
  sender_message_id: `s${n}`,
  sender: { kind: 'person', id: 'p', name: 'Ana', door: 'http' },
  text: `question ${n}`,
  attachments: [],
  state: 'answered',
  reply: { text: `answer ${n}`, partial: false, artifacts: [] },
  sent_at: AT,
  tools: [],
  ...more,
})

const running = (n: number) => message(n, { state: 'running', reply: undefined })

const page = (seq: number, messages: readonly ChatMessageView[]): ChatView => ({
  id: 'c1',
  context_id: 'terminal',
  principal: 'people',
  messages,
  seq,
  has_newer: false,
})

const status = (seq: number, n: number, conversation = 'c1'): ActivityView => ({
  seq,
  at: AT,
  type: 'status',
  task_id: `t${n}`,
  conversation_id: conversation,
  state: 'TASK_STATE_COMPLETED',
})

const asked = (n: number): ChatNews => ({ type: 'message', from: { name: 'Ana' }, text: `question ${n}`, files: [] })
const answered = (n: number): ChatNews => ({ type: 'message', from: 'agent', text: `answer ${n}`, files: [] })

/** What the chat shows of these rows of the log; each read of a conversation takes the next of `pages`. */
async function newsOf(
  rows: readonly ActivityView[],
  { pages, history = EMPTY_HISTORY }: { pages: (ChatView | Error | undefined)[]; history?: NewsOptions['history'] },
): Promise<ChatNews[]> {
  const leave = new AbortController()
  const stored = {
    read: async () => undefined,
    speakerOf: async () => ({ name: 'Ana' }),
    async readIfShown() {
      assert.ok(pages.length > 0, 'a conversation was read that did not change')
      const next = pages.shift()
      if (next instanceof Error) throw next
      return next
    },
  }
  async function* events() {
    for (const row of rows) yield { seq: row.seq, events: [row] }
    leave.abort()
  }
  const options = {
    client: { events },
    workspaceId: 'ws',
    clock: systemClock,
    stored,
    since: 0,
    history,
    command: 'molecule',
    isFollowed: () => false,
    isOwn: ({ sender_message_id: id }: ChatMessageView) => id === 's9',
    onQuestion: () => undefined,
  }
  const news: ChatNews[] = []
  for await (const one of followNews(options, leave.signal)) news.push(one)
  assert.equal(pages.length, 0, 'all pages were read')
  return news
}

test('CL-5 an answer that comes right before the platform goes away is shown when it is back', async () => {
  const away = new MoleculeError('timeout', 'the platform cannot be reached', { retryable: true })
  assert.deepEqual(await newsOf([status(1, 1)], { pages: [away, page(1, [message(1)])] }), [asked(1), answered(1)])
})

test('CL-5 the chat shows each message and each answer once, and none of its own or of before', async () => {
  const history = withNewest(undefined, page(10, [message(4), running(5)]))
  const rows = [status(11, 6), status(12, 5), status(13, 9), status(14, 6)]
  const pages = [
    page(11, [message(3), message(4), running(5), running(6)]),
    page(12, [message(4), message(5), running(6)]),
    page(13, [message(5), running(6), message(9)]),
    page(14, [message(5), message(6), message(9)]),
  ]
  assert.deepEqual(await newsOf(rows, { pages, history }), [asked(6), answered(5), answered(6)])
})

test('CL-5 a page that already contains later events is not read again for them', async () => {
  const history = withNewest(undefined, page(10, [message(1)]))
  const pages = [page(14, [message(1), message(2)])]
  assert.deepEqual(
    await newsOf(
      [11, 12, 13, 14].map((seq) => status(seq, 2)),
      { pages, history },
    ),
    [asked(2), answered(2)],
  )
})

test('CL-5 a conversation that the chat does not show is asked for once', async () => {
  const rows = [status(1, 1, 'c2'), status(2, 1, 'c2'), status(3, 7, 'c2')]
  assert.deepEqual(await newsOf(rows, { pages: [undefined] }), [])
})
