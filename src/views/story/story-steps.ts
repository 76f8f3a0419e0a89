/**
 * Turns the log rows of a message into the steps of its story. An attempt that starts twice in the log without an end
 * was cut off: its worker vanished and could write nothing about it.
 */
import type { ApiAnswer } from '../../api/api.ts'
import { formatWait } from '../../duration.ts'
import { MoleculeError } from '../../errors.ts'
import { type LogItem, RULE_DOOR } from '../../inbox/rows/log.ts'
import { isInterrupted, type Part, type TaskState, taskStateText } from '../../protocol/a2a.ts'
import { textOf } from '../../protocol/part.ts'
import type { Sender } from '../../protocol/request.ts'
import { TEXT_CHARACTERS_MAX, truncate, truncateStart } from '../../truncate.ts'
import { instant } from '../instant.ts'

type StoryStep = ApiAnswer<'GET /messages/{id}/story'>['steps'][number]

/** A message and its task's state, as stored. */
export interface StoryMessageRow {
  id: string
  workspace_id: string
  task_id: string
  idempotency_key: string
  envelope: string
  sender: string
  state: string
  failures: number
  losses: number
  admitted_at: number
  ready_at: number
  now: number
  replay_of: string | null
  replayed_as: string | null
  discarded_at: number | null
  root_id: string | null
  context_id: string
  principal: string
  task_state: TaskState
  status_message: string | null
}

/** One row of the log. */
export interface LoggedItems {
  readonly atMs: number
  readonly items: readonly LogItem[]
}

/** Where a part of a story begins: the last row of the part before, and the attempt that it ended in. */
export interface StoryCursor extends AttemptState {
  readonly seq: number
}

/** Attempts so far, whether the last one still runs, and whether it has asked a person. */
interface AttemptState {
  readonly attempt: number
  readonly open: boolean
  readonly asked: boolean
}

export const STORY_START: StoryCursor = { seq: 0, attempt: 0, open: false, asked: false }

export const writeStoryCursor = ({ seq, attempt, open, asked }: StoryCursor): string =>
  [seq, attempt, Number(open), Number(asked)].join('.')

/** Throws `invalid_request` for a text that is no cursor. */
export function readStoryCursor(text: string): StoryCursor {
  const [, seq, attempt, open, asked] = /^(\d{1,15})\.(\d{1,9})\.([01])\.([01])$/.exec(text) ?? []
  if (asked !== undefined)
    return { seq: Number(seq), attempt: Number(attempt), open: open === '1', asked: asked === '1' }
  throw new MoleculeError('invalid_request', 'after must be the "next" of an earlier part of the story', {
    details: { path: 'after' },
  })
}

interface StoryStepsOptions {
  readonly from: StoryCursor
  /** No later row follows, so the current state of the message ends the steps. */
  readonly isLast: boolean
  /** The program's own text when the message failed for good; undefined where the reader may not see it. */
  readonly detail: string | undefined
  /** The reader is an owner, who may know who answered a permission ask. */
  readonly isOwner: boolean
  /** The decisions about permission asks, as stored with the asks. */
  readonly decisions: readonly StoredDecision[]
}

export type StoredDecision = Omit<LogItem & { t: 'permission' }, 't'> & { readonly atMs: number }

export function storySteps(
  message: StoryMessageRow,
  log: readonly LoggedItems[],
  { from, isLast, isOwner, detail, decisions }: StoryStepsOptions,
): { readonly steps: StoryStep[]; readonly state: AttemptState } {
  const builder = createStepBuilder(message, from, isOwner)
  for (const { atMs, items } of log) {
    for (const item of items) builder.add(atMs, item, items)
  }
  const isPruned = from.seq === 0 && log.length === 0
  // The log is kept for days, the decisions as long as the task.
  for (const { atMs, ...decision } of isPruned ? decisions : []) builder.add(atMs, { t: 'permission', ...decision }, [])
  const steps = isLast ? [...builder.steps, ...currentSteps(message, isPruned, detail)] : builder.steps
  return { steps, state: builder.state() }
}

interface StepBuilder {
  readonly steps: StoryStep[]
  add(atMs: number, item: LogItem, row: readonly LogItem[]): void
  state(): AttemptState
}

function createStepBuilder(message: StoryMessageRow, from: StoryCursor, isOwner: boolean): StepBuilder {
  const admitted = { at: instant(message.admitted_at), type: 'admitted', text: admissionText(message) }
  const steps: StoryStep[] = from.seq === 0 ? [admitted] : []
  const say = (atMs: number, type: string, text: string) => void steps.push({ at: instant(atMs), type, text })
  let { attempt, open, asked } = from
  const tools = new Map<string, number>()
  /** Only a failure counts, here as in `attempt 2 of 4 in 5 s`. */
  const uncount = () => {
    attempt = Math.max(0, attempt - 1)
  }
  const begin = (atMs: number, again: boolean) => {
    if (asked) {
      asked = false
      return say(atMs, 'resumed', 'the answer came, and the attempt went on')
    }
    // A message behind another one of its task is logged as working before its own attempt begins.
    if (open && !again) return
    if (open) {
      say(atMs, 'lost', lostText(attempt))
      uncount()
    }
    attempt++
    open = true
    tools.clear()
    say(atMs, 'started', `attempt ${attempt} began`)
  }
  const end = (atMs: number, type: string, text: string) => {
    open = false
    say(atMs, type, tools.size === 0 ? text : `${text}; it used ${[...tools].map(toolText).join(', ')}`)
  }
  const add: StepBuilder['add'] = (atMs, item, row) => {
    if (item.t === 'late')
      say(atMs, 'late', 'a result came after another attempt had taken over; it was kept and not used')
    if (item.t === 'reply' && item.partial === true) say(atMs, 'partial', 'what it had written of the answer is kept')
    else if (item.t === 'reply') end(atMs, 'answered', `attempt ${attempt} gave the answer`)
    if (item.t === 'turn') addTurn(atMs, item.event)
    if (item.t === 'permission') say(atMs, 'permission', permissionText(item, isOwner))
    if (item.t === 'delegated') say(atMs, 'delegated', delegatedText(item, isOwner))
    if (item.t === 'budget') say(atMs, 'budget', budgetText(item, isOwner))
    if (item.t !== 'status') return
    const text = shortTextOf(item.parts)
    // The sentence of a failed turn has its category and its id already.
    const code = item.code === undefined || item.category !== undefined ? '' : ` (${item.code})`
    if (item.state === 'TASK_STATE_WORKING' && text === '')
      return begin(
        atMs,
        row.some(({ t }) => t === 'reset'),
      )
    // A parked message did not fail.
    if (item.state === 'TASK_STATE_WORKING' && item.code === 'waiting') {
      if (open) uncount()
      return end(atMs, 'waiting', text)
    }
    // The text of one with a next try begins with that try: `attempt 2 of 4 in 5 s: ...`.
    const joint = item.nextTryAtMs === undefined ? ':' : ';'
    if (item.state === 'TASK_STATE_WORKING')
      return end(atMs, 'failed', `attempt ${attempt} failed${joint} ${text}${code}`)
    if (item.state === 'TASK_STATE_FAILED') return end(atMs, 'ended', `the task failed for good: ${text}${code}`)
    if (isInterrupted(item.state)) {
      asked = open
      return say(atMs, 'asked', text === '' ? 'the agent asks for something' : `the agent asks: ${text}`)
    }
    if (item.state === 'TASK_STATE_SUBMITTED') return
    say(atMs, 'ended', `the task is ${taskStateText(item.state)}${text === '' ? '' : `: ${text}`}`)
  }
  const addTurn = (atMs: number, event: (LogItem & { t: 'turn' })['event']) => {
    if (event.type === 'tool' && event.state === 'started') tools.set(event.name, (tools.get(event.name) ?? 0) + 1)
    if (event.type === 'status') say(atMs, 'progress', truncate(event.text, TEXT_CHARACTERS_MAX))
  }
  return { steps, add, state: () => ({ attempt, open, asked }) }
}

const lostText = (attempt: number): string =>
  `attempt ${attempt} was cut off before it ended: what ran it, the platform or a bridge, had stopped`

function permissionText({ decision, tool, answerer }: Omit<StoredDecision, 'atMs'>, isOwner: boolean): string {
  if (answerer === undefined) return `no answer came in time, so the use of ${tool} was denied`
  if (answerer.door === RULE_DOOR) {
    return `a rule${isOwner ? ` of ${JSON.stringify(answerer.name)} (${answerer.principal})` : ''} allowed the use of ${tool}`
  }
  if (!isOwner) return `a person ${decision} the use of ${tool}`
  const { name, principal, door } = answerer
  return `${JSON.stringify(name)} (${principal}) ${decision} the use of ${tool} through ${door}`
}

const budgetText = ({ text, by }: LogItem & { t: 'budget' }, isOwner: boolean): string =>
  by === undefined || !isOwner ? text : `${text}, by ${JSON.stringify(by)}`

/** The names of the team are for owners. */
const delegatedText = ({ workspace, taskId }: LogItem & { t: 'delegated' }, isOwner: boolean): string =>
  isOwner ? `it delegated to ${workspace}, as task ${taskId}` : 'it delegated to another workspace'

function admissionText(message: StoryMessageRow): string {
  const sender = JSON.parse(message.sender) as Sender
  const who = sender.name === '' ? sender.id : sender.name
  const again = message.replay_of === null ? '' : `, as a replay of ${message.replay_of}`
  return `admitted from ${sender.kind} ${JSON.stringify(who)} through ${sender.door}${again}`
}

/** The current state, where it is not the end that the log shows. */
function currentSteps(message: StoryMessageRow, isPruned: boolean, detail: string | undefined): StoryStep[] {
  const { now, state } = message
  const steps: StoryStep[] = []
  const say = (type: string, text: string, atMs = now) => void steps.push({ at: instant(atMs), type, text })
  if (isPruned) say('pruned', 'later events are no longer kept')
  if (state === 'queued' && message.ready_at > now)
    say('waiting', `it will be tried again in ${formatWait(message.ready_at - now)}`)
  else if (state === 'queued') say('waiting', 'it waits in the queue')
  if (state === 'leased')
    say(
      'running',
      isInterrupted(message.task_state) ? 'the attempt waits for the answer' : 'the attempt is running now',
    )
  if (state === 'stopping') say('running', 'the task was cancelled, and the processes of the attempt are being stopped')
  if (state === 'dead' && detail !== undefined)
    say('detail', `the program said: ${truncateStart(detail, DETAIL_CHARACTERS_MAX)}`)
  if (message.replayed_as !== null) say('replayed', `it was run again as task ${message.replayed_as}`)
  else if (message.discarded_at !== null) say('discarded', 'it was discarded', message.discarded_at)
  else if (state === 'dead') say('waiting', 'a person may run it again or discard it')
  return steps
}

/** Room for the command and the end of its stderr, which is stored with at most 500 characters. */
const DETAIL_CHARACTERS_MAX = 2000

const toolText = ([name, times]: [string, number]): string => (times === 1 ? name : `${name} ${times} times`)

const shortTextOf = (parts: readonly Part[] | undefined): string => truncate(textOf(parts), TEXT_CHARACTERS_MAX)
