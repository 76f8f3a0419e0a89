/**
 * The prompts that are open: what waits for an answer of an owner, and where it is shown. Invariant: one ask has at most one
 * prompt with buttons and one notice in a place. A prompt that is over is removed.
 */
import { type Row, type Store, sql, type Transaction } from '../../../store/store.ts'
import type { PlaceKey } from './chat-log.ts'

/** What a prompt needs an answer for: a permission, a budget that is spent, or a person who wants to be let in. */
export interface Prompt extends PlaceKey {
  readonly id: string
  /** Absent until it has surely arrived. */
  readonly messageId?: string
  /** Empty for a person: no task waits for the answer. */
  readonly taskId: string
  /** Of the pending ask, of one question about a budget in one place, or of one person. */
  readonly askId: string
  readonly text: string
  /** It only says that an owner is asked: it has no buttons, and no answer counts there. */
  readonly isNotice?: boolean
  readonly budget?: BudgetPrompt
  readonly pairing?: PairingPrompt
  /** An answer that may not have arrived. Its ask says which one. */
  readonly resend?: { readonly deliveryId: string }
}

export interface BudgetPrompt {
  readonly id: string
  readonly askedAtMs: number
  /** False: the prompt only says that the message waits for the next day, and no answer is needed. */
  readonly isAsked: boolean
  /** The amount of the button that raises it; absent where the prompt has no buttons. */
  readonly toUsd?: number
}

export interface PairingPrompt {
  readonly person: string
  /** A person who asks again after a while has another code. */
  readonly code: string
}

const RESEND = 'resend '
const NO_RESEND = `ask_id not like '${RESEND}%'`

/** Open prompts of a channel that are looked at; the oldest first. */
const LISTED_MAX = 1000

export interface PromptLog {
  /** The prompt of an ask in a place, made where it is new. */
  add(prompt: Omit<Prompt, 'messageId'>): Promise<Prompt>
  /** False when it was removed before: nothing closes this message any more. */
  setMessage(id: string, messageId: string): Promise<boolean>
  /** Adds a sentence to its text. Twice the same one changes nothing. */
  note(id: string, sentence: string): Promise<void>
  find(id: string): Promise<Prompt | undefined>
  /** In every place. */
  ofAsk(askId: string): Promise<Prompt[]>
  /** Of permissions. */
  ofTask(taskId: string): Promise<Prompt[]>
  /** All of a channel. */
  ofChannel(channel: string): Promise<Prompt[]>
  /** Those of the place that have buttons. */
  inPlace(key: PlaceKey): Promise<Prompt[]>
  /** Of a message of the bot, with buttons. */
  ofMessage(channel: string, messageId: string): Promise<Prompt[]>
  /** False when it was removed before. */
  remove(id: string): Promise<boolean>
}

export function createPromptLog(store: Store): PromptLog {
  /** False when no prompt was changed. */
  const run = async (text: string, values: readonly string[]) => {
    const changed = await store.write(() => sql(`${text} returning id`, values))
    return changed.length > 0
  }
  const list = (where: string, values: readonly string[]) => store.read(() => listPrompts(where, values))
  return {
    add: (prompt) => store.write(() => insertPrompt(prompt)),
    setMessage: (id, messageId) => run('update chat_prompts set message_id = $2 where id = $1', [id, messageId]),
    async note(id, sentence) {
      const values = [id, sentence, `%${sentence}`]
      await run('update chat_prompts set text = text || $2 where id = $1 and text not like $3', values)
    },
    find: async (id) => (await list('id = $1', [id]))[0],
    ofAsk: (askId) => list('ask_id = $1', [askId]),
    ofTask: (taskId) => list(`task_id = $1 and budget is null and pairing is null and ${NO_RESEND}`, [taskId]),
    ofChannel: (channel) => list('channel = $1', [channel]),
    inPlace: ({ channel, place }) => list('channel = $1 and place = $2 and notice = 0', [channel, place]),
    ofMessage: (channel, messageId) => list('channel = $1 and message_id = $2 and notice = 0', [channel, messageId]),
    remove: (id) => run('delete from chat_prompts where id = $1', [id]),
  }
}

function* insertPrompt(prompt: Omit<Prompt, 'messageId'>): Transaction<Prompt> {
  const { id, channel, place, taskId, askId, text, isNotice, budget, pairing } = prompt
  const notice = isNotice ? 1 : 0
  const json = [budget, pairing].map((value) => (value === undefined ? null : JSON.stringify(value)))
  yield* sql(
    `insert into chat_prompts (id, channel, place, task_id, ask_id, text, notice, budget, pairing, created_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, now_ms()) on conflict (ask_id, channel, place, notice) do nothing`,
    [id, channel, place, taskId, askId, text, notice, ...json],
  )
  const key = 'ask_id = $1 and channel = $2 and place = $3 and notice = $4'
  return (yield* listPrompts(key, [askId, channel, place, notice]))[0] as Prompt
}

function* listPrompts(where: string, values: readonly (string | number)[]): Transaction<Prompt[]> {
  const rows = yield* sql(`select * from chat_prompts where ${where} order by id limit ${LISTED_MAX}`, values)
  return rows.map(toPrompt)
}

function toPrompt(row: Row): Prompt {
  const { message_id: messageId, budget, pairing } = row
  const askId = String(row['ask_id'])
  return {
    id: String(row['id']),
    channel: String(row['channel']),
    place: String(row['place']),
    taskId: String(row['task_id']),
    askId,
    text: String(row['text']),
    ...(Number(row['notice']) === 1 && { isNotice: true }),
    ...(typeof messageId === 'string' && { messageId }),
    ...(typeof budget === 'string' && { budget: JSON.parse(budget) }),
    ...(typeof pairing === 'string' && { pairing: JSON.parse(pairing) }),
    ...(askId.startsWith(RESEND) && { resend: { deliveryId: askId.slice(RESEND.length) } }),
  }
}
