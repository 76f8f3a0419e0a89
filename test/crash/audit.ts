/**
 * The audit after the last platform has stopped: compares what was promised with what is stored and what the clients
 * received. Each check is one sentence with its violations. It reads tables and files with its own code, so that a bug
 * of the platform cannot hide itself.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readReply } from '../../src/protocol/stored-reply.ts'
import type { SentMessage } from './client-load.ts'
import type { Database, DatabaseRow } from './database.ts'

export interface AuditCheck {
  readonly title: string
  /** Empty = the check passes. */
  readonly violations: readonly string[]
}

export interface Audit {
  readonly admitted: number
  readonly answered: number
  /** Dead letters, by code. */
  readonly failed: Readonly<Record<string, number>>
  readonly lost: number
  readonly answeredTwice: number
  /** Runs of exec commands. */
  readonly agentRuns: number
  /** Messages to exec workspaces. */
  readonly counted: number
  readonly checks: readonly AuditCheck[]
}

interface StoredMessage {
  readonly key: string
  readonly taskId: string
  readonly conversationId: string
  readonly n: number
  readonly state: string
  readonly attempts: number
  readonly reply: string | undefined
  readonly taskState: string
  readonly code: string | undefined
  /** The numbers of the log entries with its reply. */
  replySeqs: number[]
}

export async function audit(database: Database, sent: readonly SentMessage[], runsDir: string): Promise<Audit> {
  const stored = await readMessages(database)
  const byKey = new Map(stored.map((message) => [message.key, message]))
  const runs = readRuns(runsDir)
  const lost = sent.flatMap((message) => describeLoss(message, byKey.get(message.messageId)))
  const twice = [...findRepeated(stored), ...stored.flatMap(describeReplyCount), ...sent.flatMap(describeClientView)]
  const failed: Record<string, number> = {}
  for (const { state, code = 'unknown' } of stored) {
    if (state === 'dead') failed[code] = (failed[code] ?? 0) + 1
  }
  return {
    admitted: stored.length,
    answered: stored.filter(({ state }) => state === 'done').length,
    failed,
    lost: lost.length,
    answeredTwice: twice.length,
    agentRuns: [...runs.values()].reduce((total, marks) => total + marks.length, 0),
    counted: sent.filter(({ counted }) => counted).length,
    checks: [
      { title: 'RE-1 every acknowledged message has its task, and the task is final', violations: lost },
      { title: 'RE-1 no message has two replies in the store, in the log or at its client', violations: twice },
      { title: 'RE-1 every reply is correct', violations: findWrongReplies(sent, byKey) },
      {
        title: 'RE-1 an agent ran for every answer, once per lease and only in counted attempts',
        violations: findExtraRuns(sent, { byKey, runs }),
      },
      {
        title: 'IN-2 the replies of a conversation are in the order of its messages',
        violations: findDisorder(stored),
      },
      { title: 'IN-5 the log of every workspace has each number once', violations: await findLogGaps(database) },
      { title: 'RT-5 every session counted each answer once', violations: await findMiscountedSessions(database) },
      {
        title: 'RE-1 no message is leased or waiting, and every counter is zero',
        violations: await findLeftOpen(database),
      },
    ],
  }
}

async function readMessages(database: Database): Promise<StoredMessage[]> {
  const rows = await database.rows(
    `select m.id, m.idempotency_key, m.task_id, m.conversation_id, m.n, m.state, m.failures, m.losses, m.reply,
       t.state as task_state, t.status_message from messages m left join tasks t on t.id = m.task_id`,
  )
  const byId = new Map(rows.map((row) => [String(row['id']), toMessage(row)]))
  for (const event of await database.rows(`select seq, message_id, items from events order by seq`)) {
    const items = JSON.parse(String(event['items'])) as { t: string }[]
    for (const item of items) {
      if (item.t === 'reply') byId.get(String(event['message_id']))?.replySeqs.push(Number(event['seq']))
    }
  }
  return [...byId.values()]
}

function toMessage(row: DatabaseRow): StoredMessage {
  const statusMessage = JSON.parse(String(row['status_message'] ?? '{}')) as { code?: string }
  const reply = row['reply'] === null ? undefined : readReply(String(row['reply']), String(row['id']))
  return {
    key: String(row['idempotency_key']),
    taskId: String(row['task_id']),
    conversationId: String(row['conversation_id']),
    n: Number(row['n']),
    state: String(row['state']),
    attempts: Number(row['failures']) + Number(row['losses']) + (row['state'] === 'done' ? 1 : 0),
    reply: reply?.parts[0]?.text,
    taskState: String(row['task_state']),
    code: statusMessage.code,
    replySeqs: [],
  }
}

/** The marks of all runs, by message id. */
function readRuns(runsDir: string): Map<string, string[]> {
  const lines = (name: string) => readFileSync(join(runsDir, name), 'utf8').split('\n').filter(Boolean)
  return new Map(readdirSync(runsDir).map((name) => [name, lines(name)]))
}

const FINAL_STATES: Readonly<Record<string, string>> = { done: 'TASK_STATE_COMPLETED', dead: 'TASK_STATE_FAILED' }

/** A message that its client got a task for must be stored under that task and be final. */
function describeLoss({ messageId, taskIds, end }: SentMessage, stored: StoredMessage | undefined): string[] {
  if (taskIds.size === 0) return [`${messageId} was never acknowledged, although its client kept sending it`]
  if (stored === undefined) return [`${messageId} was acknowledged and is not stored`]
  if (!taskIds.has(stored.taskId)) return [`${messageId} was acknowledged with a task that is not its own`]
  if (FINAL_STATES[stored.state] !== stored.taskState) {
    return [`${messageId} is ${stored.state}, its task ${stored.taskState}`]
  }
  return end === stored.taskState ? [] : [`${messageId} ended ${stored.taskState}, its client received ${end}`]
}

function findRepeated(stored: readonly StoredMessage[]): string[] {
  const groups = Map.groupBy(stored, ({ key }) => key)
  return [...groups].flatMap(([key, all]) => (all.length > 1 ? [`${key} was stored ${all.length} times`] : []))
}

function describeReplyCount({ key, state, reply, replySeqs }: StoredMessage): string[] {
  const expected = state === 'done' ? 1 : 0
  if (replySeqs.length !== expected) return [`${key} is ${state} and the log has ${replySeqs.length} replies of it`]
  if ((reply === undefined) === (state === 'done')) return [`${key} is ${state}, its stored reply is ${reply}`]
  return []
}

function describeClientView({ messageId, replies, taskIds }: SentMessage): string[] {
  if (replies.size > 1) return [`the client of ${messageId} received ${[...replies].join(' and ')}`]
  return taskIds.size > 1 ? [`the client of ${messageId} received the tasks ${[...taskIds].join(' and ')}`] : []
}

function findWrongReplies(sent: readonly SentMessage[], byKey: ReadonlyMap<string, StoredMessage>): string[] {
  return sent.flatMap(({ messageId, expected, replies }) => {
    const seen = new Set(replies)
    const stored = byKey.get(messageId)?.reply
    if (stored !== undefined) seen.add(stored)
    seen.delete(expected)
    return [...seen].map((reply) => `${messageId} was answered with ${JSON.stringify(reply)}`)
  })
}

/** After a crash an agent may run again, but each run has its own lease and each lost run is counted. */
function findExtraRuns(
  sent: readonly SentMessage[],
  { byKey, runs }: { byKey: ReadonlyMap<string, StoredMessage>; runs: ReadonlyMap<string, readonly string[]> },
): string[] {
  return sent.flatMap(({ messageId, counted }) => {
    const stored = byKey.get(messageId)
    const marks = runs.get(messageId) ?? []
    if (!counted || stored === undefined) return []
    if (stored.state === 'done' && marks.length === 0) return [`${messageId} was answered, but its agent never ran`]
    if (new Set(marks).size < marks.length) return [`${messageId} ran twice under one lease: ${marks.join(', ')}`]
    if (marks.length <= stored.attempts) return []
    return [`${messageId} ran ${marks.length} times in ${stored.attempts} attempts`]
  })
}

function findDisorder(stored: readonly StoredMessage[]): string[] {
  const answered = stored.filter(({ replySeqs }) => replySeqs.length > 0)
  const conversations = Map.groupBy(answered, ({ conversationId }) => conversationId)
  return [...conversations.values()].flatMap((messages) => {
    const inOrder = messages.sort((a, b) => a.n - b.n)
    return inOrder.flatMap((message, index) => {
      const previousSeq = inOrder[index - 1]?.replySeqs[0] ?? 0
      return (message.replySeqs[0] ?? 0) > previousSeq
        ? []
        : [`${message.key} was answered before an earlier message of its conversation`]
    })
  })
}

async function findLogGaps(database: Database): Promise<string[]> {
  const rows = await database.rows(
    `select l.workspace_id, l.seq, (select count(*) from events e where e.workspace_id = l.workspace_id) as total,
       (select max(seq) from events e where e.workspace_id = l.workspace_id) as last from workspace_load l`,
  )
  return rows
    .filter((row) => Number(row['seq']) !== Number(row['total']) || Number(row['seq']) !== Number(row['last']))
    .map(
      (row) => `${row['workspace_id']} is at ${row['seq']} and has ${row['total']} rows, the last with ${row['last']}`,
    )
}

/** The session of the mock counts its turns. A turn that ran again must count once, because it has one answer. */
async function findMiscountedSessions(database: Database): Promise<string[]> {
  const rows = await database.rows(
    `select s.conversation_id, s.token, (select count(*) from messages m
       where m.conversation_id = s.conversation_id and m.state = 'done') as answers
     from sessions s where s.runtime = 'mock'`,
  )
  if (rows.length === 0) return ['no session is stored']
  return rows
    .filter((row) => row['token'] !== `mock-${row['answers']}`)
    .map((row) => `${row['conversation_id']} has ${row['answers']} answers and the session ${row['token']}`)
}

async function findLeftOpen(database: Database): Promise<string[]> {
  const counters = await database.rows(
    'select * from workspace_load where running <> 0 or waiting <> 0 or suspended <> 0',
  )
  const held = await database.rows(
    'select id, worker, ready_at from conversations where worker is not null or ready_at is not null',
  )
  const unsettled = await database.rows('select idempotency_key, state from messages where settled_at is null')
  return [...counters, ...held, ...unsettled].map((row) => JSON.stringify(row))
}
