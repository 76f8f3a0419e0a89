/**
 * Turns the entries of a workspace's log into turns and their steps, as people read them. Each start of a tool is joined
 * with its end. Entries come in the order of the log; turns are returned with the last changed first.
 */
import type { ActivityView } from '../../../../src/client/views.ts'
import { beginSentence, plainReason } from '../../api/sentence.ts'

export type StepKind = 'message' | 'command' | 'file' | 'tool' | 'delegation' | 'wait' | 'note'

export interface Step {
  readonly key: string
  readonly at: string
  readonly kind: StepKind
  readonly look: 'sent' | 'done' | 'failed' | 'waiting' | 'running'
  readonly verb: string
  /** A command, a path: shown in monospace. */
  readonly subject?: string
  /** At the right: how long it took, the attempt. */
  readonly note?: string
  readonly tookMs?: number
  readonly detail?: string
  /** The detail ends in the middle. */
  readonly isCut?: true
  readonly diffs?: ActivityView['diffs']
  /** A workspace or task that the step leads to. */
  readonly taskId?: string
}

export interface TurnSteps {
  /** Undefined for notes that belong to no task. */
  readonly taskId: string | undefined
  readonly startedAt: string
  readonly endedAt: string
  readonly steps: readonly Step[]
}

export function buildTurns(entries: readonly ActivityView[]): TurnSteps[] {
  const groups = Map.groupBy(entries, ({ task_id: taskId, seq }) => taskId ?? `note ${seq}`)
  return [...groups.values()]
    .map(toTurn)
    .filter(({ steps }) => steps.length > 0)
    .toSorted((a, b) => (a.endedAt < b.endedAt ? 1 : -1))
}

function toTurn(entries: readonly ActivityView[]): TurnSteps {
  const builder = createBuilder()
  for (const [index, entry] of entries.entries()) builder.add(entry, index)
  const [first, last] = [entries[0], entries.at(-1)]
  return {
    taskId: first?.task_id,
    startedAt: first?.at ?? '',
    endedAt: last?.at ?? '',
    steps: builder.steps(),
  }
}

type StepBody = Omit<Step, 'key' | 'at'>

interface BuilderState {
  attempt: number
  asked: boolean
  /** `cut`: the turn was stopped or failed. Undefined while it runs. */
  end: 'whole' | 'cut' | undefined
  /** How long the turn has waited for a person, and since when it waits. */
  waitedMs: number
  waitsSinceMs: number | undefined
}

function createBuilder() {
  const steps: Step[] = []
  /** Places of tools that run, by name and subject: an agent may run the same tool twice at once. */
  const open = new Map<string, number[]>()
  const state: BuilderState = { attempt: 0, asked: false, end: undefined, waitedMs: 0, waitsSinceMs: undefined }
  /** Of each tool that runs: the wait before it began. */
  const waitedBefore = new Map<number, number>()
  const addTool = (entry: ActivityView, step: Step) => {
    const name = `${entry.name} ${entry.subject ?? ''}`
    const places = open.get(name) ?? []
    const place = entry.state === 'started' ? undefined : places.shift()
    const begun = place === undefined ? undefined : steps[place]
    if (place === undefined || begun === undefined) {
      if (entry.state === 'started') open.set(name, [...places, steps.length])
      waitedBefore.set(steps.length, state.waitedMs)
      steps.push(step)
      return
    }
    // The time that a person took to answer is not the time of the tool.
    const waitedMs = state.waitedMs - (waitedBefore.get(place) ?? 0)
    const tookMs = Math.max(0, Date.parse(entry.at) - Date.parse(begun.at) - waitedMs)
    const { look, note, diffs } = step
    steps[place] = { ...begun, look, tookMs, ...(note !== undefined && { note }), ...(diffs && { diffs }) }
  }
  return {
    add(entry: ActivityView, index: number) {
      if (entry.type === 'status') addWait(state, entry)
      const body = entry.type === 'tool' ? toolBody(entry) : entryBody(entry, state)
      if (body === undefined) return
      const step = { key: `${entry.seq}-${index}`, at: entry.at, ...body }
      if (entry.type === 'tool') addTool(entry, step)
      else steps.push(step)
    },
    steps: () => steps.map((step) => (step.look === 'running' ? openStep(step, state) : step)),
  }
}

function addWait(state: BuilderState, { at, state: taskState }: ActivityView): void {
  const atMs = Date.parse(at)
  if (state.waitsSinceMs !== undefined) state.waitedMs += atMs - state.waitsSinceMs
  const isWait = taskState === 'TASK_STATE_INPUT_REQUIRED' || taskState === 'TASK_STATE_AUTH_REQUIRED'
  state.waitsSinceMs = isWait ? atMs : undefined
}

/**
 * A tool whose end was not reported ended with its turn, and did not end where the turn was stopped or failed. While the
 * turn waits for a person, no tool of it runs.
 */
function openStep(step: Step, { end, asked }: BuilderState): Step {
  if (end === 'cut') return { ...step, look: 'waiting', note: 'did not end' }
  if (end === 'whole') return { ...step, look: 'done' }
  return asked ? { ...step, look: 'waiting', note: 'waits for you' } : step
}

const COMMAND =
  /^(bash|shell|local_shell|exec|exec_command|execute|run|run_command|run_shell_command|terminal|command)$/i
const CHANGE =
  /^(edit|multiedit|write|notebookedit|apply_patch|patch|write_file|replace|edit_file|create_file|file_change)$/i
const READ = /^(read|read_file|read_many_files|view|open_file)$/i
const END_LOOKS = { started: 'running', finished: 'done', failed: 'failed' } as const

function toolBody({ name = 'a tool', subject, state, diffs }: ActivityView): StepBody {
  const look = END_LOOKS[state as keyof typeof END_LOOKS] ?? 'done'
  const rest = {
    look,
    ...(subject && { subject }),
    ...(state === 'failed' && { note: 'failed' }),
    diffs,
  }
  if (COMMAND.test(name)) return { kind: 'command', verb: 'Ran', ...rest }
  if (CHANGE.test(name)) return { kind: 'file', verb: 'Changed', ...rest }
  if (READ.test(name)) return { kind: 'file', verb: 'Read', ...rest }
  return { kind: 'tool', verb: `Used ${shownTool(name)}`, ...rest }
}

const MCP_PREFIX = 'mcp__'

/** `search of docs` for `mcp__docs__search`. */
function shownTool(name: string): string {
  const at = name.startsWith(MCP_PREFIX) ? name.indexOf('__', MCP_PREFIX.length + 1) : -1
  const tool = name.slice(at + 2)
  return at === -1 || tool === '' ? name : `${tool} of ${name.slice(MCP_PREFIX.length, at)}`
}

function entryBody(entry: ActivityView, state: BuilderState): StepBody | undefined {
  const { type, name, subject, text, by } = entry
  switch (type) {
    case 'status':
      return statusBody(entry, state)
    case 'reply':
      return { kind: 'message', look: 'done', verb: 'Answered', ...(text && { detail: text }) }
    case 'partial':
      return {
        kind: 'message',
        look: 'waiting',
        verb: 'Wrote, before it was stopped',
        ...(text && { detail: text }),
        isCut: true,
      }
    case 'retry':
      return undefined
    case 'late':
      return { kind: 'wait', look: 'waiting', verb: 'A late result was kept and not used' }
    case 'progress':
      return { kind: 'note', look: 'done', verb: text ?? '' }
    case 'artifact':
      return { kind: 'file', look: 'done', verb: 'Made', ...(name && { subject: name }) }
    case 'delegated':
      return { kind: 'delegation', look: 'done', verb: `Asked ${name}`, ...(subject && { taskId: subject }) }
    case 'permission':
      return { kind: 'message', look: 'sent', verb: permissionText(entry), ...(subject && { subject }) }
    case 'rule':
      return { kind: 'message', look: 'sent', verb: `${by} ${text} a rule for ${name}`, ...(subject && { subject }) }
    case 'budget':
      return { kind: 'wait', look: 'waiting', verb: beginSentence(text ?? 'The budget changed') }
    case 'status_text':
      return { kind: 'note', look: 'done', verb: text ? `Says: ${text}` : 'Took its status line away' }
    default:
      return {
        kind: 'note',
        look: 'done',
        verb: beginSentence(`${type.replaceAll(/[_.-]/g, ' ')}: ${text ?? ''}`),
        ...(by && { note: by }),
      }
  }
}

/** Only of a rule, a permission names the pattern. */
function permissionText({ name, text = '', by, subject }: ActivityView): string {
  if (by === undefined) return `${name} was denied: no answer came in time`
  return subject === undefined ? `${by} ${text} ${name}` : `A rule of ${by} allowed ${name}`
}

function statusBody({ state: taskState, text }: ActivityView, state: BuilderState): StepBody | undefined {
  switch (taskState) {
    case 'TASK_STATE_SUBMITTED':
      return text ? { kind: 'wait', look: 'waiting', verb: beginSentence(text) } : undefined
    case 'TASK_STATE_WORKING':
      if (text)
        return {
          kind: 'wait',
          look: 'waiting',
          verb: beginSentence(plainReason(text)),
          note: `attempt ${state.attempt}`,
        }
      return beganBody(state)
    case 'TASK_STATE_INPUT_REQUIRED':
      state.asked = true
      return { kind: 'message', look: 'waiting', verb: 'Asks you', ...(text && { detail: text }) }
    case 'TASK_STATE_AUTH_REQUIRED':
      state.asked = true
      return { kind: 'message', look: 'waiting', verb: beginSentence(text ?? 'Asks you') }
    case 'TASK_STATE_FAILED':
      state.end = 'cut'
      return { kind: 'message', look: 'failed', verb: `Failed: ${plainReason(text ?? 'no reason was given')}` }
    case 'TASK_STATE_CANCELED':
      state.end = 'cut'
      return { kind: 'message', look: 'failed', verb: stoppedText(state, text) }
    case 'TASK_STATE_REJECTED':
      state.end = 'whole'
      return { kind: 'message', look: 'failed', verb: text ? `Refused: ${text}` : 'Refused' }
    default:
      // The answer is a step of its own.
      state.end = 'whole'
      return undefined
  }
}

function stoppedText({ attempt }: BuilderState, reason: string | undefined): string {
  const what = attempt === 0 ? 'Cancelled before it began' : 'Stopped'
  return reason ? `${what}: ${reason}` : what
}

function beganBody(state: BuilderState): StepBody {
  if (state.asked) {
    state.asked = false
    return { kind: 'message', look: 'sent', verb: 'Went on after the answer' }
  }
  state.attempt++
  if (state.attempt === 1) return { kind: 'message', look: 'sent', verb: 'Began' }
  return { kind: 'wait', look: 'waiting', verb: 'Ran again', note: `attempt ${state.attempt}` }
}

export type StepFilter = 'all' | 'message' | 'command' | 'file' | 'tool' | 'delegation' | 'wait'

export const FILTERS: readonly { readonly id: StepFilter; readonly title: string }[] = [
  { id: 'all', title: 'All' },
  { id: 'message', title: 'Messages' },
  { id: 'command', title: 'Commands' },
  { id: 'file', title: 'Files' },
  { id: 'tool', title: 'Tools' },
  { id: 'delegation', title: 'Delegations' },
  { id: 'wait', title: 'Waits and restarts' },
]

export const isShown = (step: Step, filter: StepFilter): boolean => filter === 'all' || step.kind === filter
