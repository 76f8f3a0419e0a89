/** A worker of an external workspace whose turns the test runs by hand: it says when a text, a tool or an end comes. */
import assert from 'node:assert/strict'
import type { PlatformUnderTest } from './platform.ts'

export interface HandTurn {
  readonly text: string
  append(...events: readonly object[]): Promise<void>
  /** Asks for a permission; without a tool it is a question. */
  ask(text: string, permission?: { readonly tool: string; readonly subject: string }): Promise<void>
  settle(outcome: object): Promise<void>
  /** Answers with a text. */
  answer(text: string, more?: object): Promise<void>
}

export interface HandWorker {
  readonly workspaceId: string
  /** The next message of the workspace. */
  lease(): Promise<HandTurn>
  /** The text of the next answer to a question. */
  nextAnswer(): Promise<string>
}

const HOST = 'by-hand'
/** Each waits for a second where nothing comes. */
const POLLS_MAX = 30

export async function createHandWorker(platform: PlatformUnderTest, workspace: object): Promise<HandWorker> {
  const made = await platform.request('POST', '/workspaces', { name: 'Ada', runtime: 'external', ...workspace })
  assert.equal(made.status, 201, JSON.stringify(made.body))
  const workspaceId = made.body.id as string
  const call = async (name: string, body: object) => {
    const answer = await platform.request('POST', `/workspaces/${workspaceId}/inbox/${name}`, body)
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
    return answer.body
  }
  const holding: string[] = []
  // biome-ignore lint/suspicious/noExplicitAny: directives are answers of the platform
  const waiting: any[] = []
  const nextDirective = async (isWanted: (directive: (typeof waiting)[number]) => boolean) => {
    for (let polls = 0; polls < POLLS_MAX; polls++) {
      const index = waiting.findIndex(isWanted)
      if (index >= 0) return waiting.splice(index, 1)[0]
      const poll = { bridge: HOST, host: HOST, leases_max: 8, holding, wait_ms: 1000 }
      waiting.push(...(await call('lease', poll)).handouts)
    }
    return assert.fail('no directive came to the worker')
  }
  /** The asks that have their answer: the platform repeats an answer until the turn has settled. */
  const answered = new Set<string>()
  const askOf = ({ key, askId }: (typeof waiting)[number]): string => `${key.messageId} ${key.epoch} ${askId}`
  return {
    workspaceId,
    async lease() {
      const { lease } = await nextDirective(({ type }) => type === 'lease')
      holding.push(`${lease.messageId}.${lease.epoch}`)
      return createTurn(lease, call)
    },
    async nextAnswer() {
      const found = await nextDirective((directive) => directive.type === 'answer' && !answered.has(askOf(directive)))
      answered.add(askOf(found))
      const { parts = [] } = found
      return parts.map(({ text }: { text: string }) => text).join('')
    },
  }
}

// biome-ignore lint/suspicious/noExplicitAny: the lease is an answer of the platform.
function createTurn(lease: any, call: (name: string, body: object) => Promise<unknown>): HandTurn {
  const { conversationId, taskId, messageId, epoch } = lease
  const key = { conversationId, taskId, messageId, epoch }
  let from = 1
  let asks = 0
  const settle = async (outcome: object) => void (await call('settle', { key, host: HOST, outcome }))
  return {
    text: JSON.stringify(lease.envelope),
    async append(...events) {
      await call('append', { key, from, events })
      from += events.length
    },
    async ask(text, permission) {
      const question = { id: `ask-${++asks}`, parts: [{ text }], ...(permission && { permission }) }
      await call('ask', { key, question })
    },
    settle,
    answer: (text, more = {}) =>
      settle({ type: 'done', finality: 'completed', parts: [{ text }], artifacts: [], ...more }),
  }
}
