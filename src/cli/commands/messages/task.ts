/**
 * `molecule task`: list, show, cancel. A task is named by its own id, by the id of its message, or by the id that the
 * sender gave the message.
 */
import type { PlatformClient } from '../../../client/platform-client.ts'
import { readStory, type StoryView } from '../../../client/story.ts'
import { listWorkspaces } from '../../../client/workspaces.ts'
import { MoleculeError } from '../../../errors.ts'
import { withoutControls } from '../../../printable.ts'
import { isFinal, TASK_STATES, type Task, type TaskState, taskStateText } from '../../../protocol/a2a.ts'
import type { CommandContext, DefineCommand } from '../../command-context.ts'
import { answerFilesOf, SAVE_FOLDER } from '../../files/save-files.ts'
import { resolveWorkspaceId } from '../../platform/platform-access.ts'
import { formatSeconds } from '../../terminal/human-time.ts'
import { type Column, formatBytes, renderFields } from '../../terminal/output.ts'
import { firstLine, partsText, replyText } from '../../terminal/task-text.ts'

const TASKS_DEFAULT = 20
const TASKS_MAX = 100
/** The list of all workspaces takes one request for each of them. */
const WORKSPACES_MAX = 200

const STATES: ReadonlyMap<string, TaskState> = new Map(TASK_STATES.map((state) => [taskStateText(state), state]))

export const define: DefineCommand = (command, openContext) => {
  command
    .command('list')
    .description('list the last tasks of one workspace, or of all')
    .argument('[workspace]', 'id or name')
    .option('--state <state>', `only tasks in this state: ${[...STATES.keys()].join(', ')}`)
    .option('--context <id>', 'only tasks of this conversation')
    .option('-n, --lines <number>', `how many, at most ${TASKS_MAX} (${TASKS_DEFAULT})`)
    .action(async (workspace: string | undefined, options: ListFlags) => list(await openContext(), workspace, options))
  command
    .command('show')
    .description('show a task, its state and its answer')
    .argument('<id>', 'id of a task or of a message')
    .option('--save [folder]', `also save the files of its answer (${SAVE_FOLDER} in the current folder)`)
    .action(async (id: string, options: { save?: string | true }) => showTask(await openContext(), id, options))
  command
    .command('cancel')
    .description('cancel tasks: a waiting one never begins, a running one is stopped')
    .argument('<id...>', 'ids of tasks or of messages')
    .action(async (ids: string[]) => cancelTasks(await openContext(), ids))
}

interface ListFlags {
  readonly state?: string
  readonly context?: string
  readonly lines?: string
}

interface TaskLine {
  readonly id: string
  readonly workspace_id: string
  readonly workspace: string
  readonly context_id: string
  readonly state: string
  /** Why it waits, what it asks, or why it failed. */
  readonly reason?: string
  readonly changed_at: string
  readonly text: string
}

const COLUMNS: readonly Column<TaskLine>[] = [
  { title: 'id', of: ({ id }) => id, isWhole: true },
  { title: 'workspace', of: ({ workspace }) => workspace },
  { title: 'state', of: (line) => stateText(line.state, listedReason(line)) },
  { title: 'changed', of: ({ changed_at: at }) => `${formatSeconds((Date.now() - Date.parse(at)) / 1000)} ago` },
  { title: 'text', of: ({ text }) => text },
]

/** `failed: the agent's program is missing`. Why a task waits says already that it does. */
function stateText(state: string, reason = ''): string {
  return reason === '' || reason.startsWith('waiting') ? reason || state : `${state}: ${reason}`
}

/** A question is shown whole; of a failure the sentence, because "task show" has the program's own words below it. */
const listedReason = ({ state, reason = '' }: TaskLine): string =>
  state.endsWith(' required') ? reason : firstLine(reason)

async function list(
  { platform, show, table }: CommandContext,
  workspace: string | undefined,
  { state, context, lines }: ListFlags,
): Promise<void> {
  const limit = lines === undefined ? TASKS_DEFAULT : parseCount(lines)
  const query = {
    limit,
    historyLength: 1,
    contextId: context,
    ...(state !== undefined && { status: parseState(state) }),
  }
  const client = platform()
  const found: TaskLine[] = []
  for (const { id, name } of await workspacesToList(client, workspace)) {
    const tasks = await client.listTasks(id, query)
    found.push(...tasks.map((task) => toLine(task, { id, name })))
  }
  const last = found.sort((a, b) => (a.changed_at < b.changed_at ? 1 : -1)).slice(0, limit)
  const none = workspace === undefined && state === undefined ? 'There are no tasks yet.' : 'There are no such tasks.'
  await show(last, () => table(last, COLUMNS, none))
}

interface NamedWorkspace {
  readonly id: string
  readonly name: string
}

async function workspacesToList(
  client: PlatformClient,
  workspace: string | undefined,
): Promise<readonly NamedWorkspace[]> {
  if (workspace !== undefined)
    return [await client.call('GET /workspaces/{id}', { id: await resolveWorkspaceId(client, workspace) })]
  const all = await listWorkspaces(client)
  if (all.length <= WORKSPACES_MAX) return all
  throw new MoleculeError('invalid_request', `there are ${all.length} workspaces; name the one whose tasks you want`)
}

function toLine(task: Task, workspace: NamedWorkspace): TaskLine {
  const { id, contextId, status, history = [] } = task
  const reason = status.state === 'TASK_STATE_COMPLETED' ? '' : partsText(status.message)
  return {
    id,
    workspace_id: workspace.id,
    workspace: workspace.name,
    context_id: contextId,
    state: taskStateText(status.state),
    ...(reason !== '' && { reason }),
    changed_at: status.timestamp ?? '',
    text: partsText(history.at(-1)),
  }
}

async function showTask(context: CommandContext, id: string, { save }: { save?: string | true }): Promise<void> {
  const client = context.platform()
  const story = await readStory(client, id)
  const task = await client.getTask(story.workspace_id, story.task_id)
  const { name } = await client.call('GET /workspaces/{id}', { id: story.workspace_id })
  await context.show({ ...task, workspace_id: story.workspace_id }, () => renderTask(context, task, { ...story, name }))
  if (save === undefined) return
  const { saveAnswer } = await import('./agent-send.ts')
  await saveAnswer(context, task, save === true ? SAVE_FOLDER : save)
}

function renderTask({ command }: CommandContext, task: Task, story: StoryView & { readonly name: string }): string {
  const { state, message, timestamp } = task.status
  const isCompleted = state === 'TASK_STATE_COMPLETED'
  const reason = isCompleted ? '' : partsText(message)
  const { files, links } = answerFilesOf(task)
  const head = renderFields([
    ['task', task.id],
    ['workspace', `${story.name} (${story.workspace_id})`],
    ['state', stateText(taskStateText(state), reason)],
    ['changed', timestamp],
    ['conversation', task.contextId],
    ['from', `${story.sender.kind} ${story.sender.name} by ${story.sender.door}`],
    ['text', story.text],
    ['files', namesOf(files)],
    ['links', links.length === 0 ? undefined : links.join(', ')],
  ])
  const answer = isCompleted || reason === '' ? withoutControls(replyText(task)) : ''
  if (answer !== '') return `${head}\n${answer.endsWith('\n') ? answer : `${answer}\n`}`
  if (isFinal(state)) return `${head}\n"${command} explain ${task.id}" shows each attempt\n`
  return `${head}\n"${command} task cancel ${task.id}" cancels it\n`
}

function namesOf(files: ReturnType<typeof answerFilesOf>['files']): string | undefined {
  if (files.length === 0) return undefined
  return files.map(({ name, content }) => `${name} (${formatBytes(content.length)})`).join(', ')
}

/** A task that cannot be cancelled does not keep the others from it. */
async function cancelTasks({ platform, show }: CommandContext, ids: readonly string[]): Promise<void> {
  const client = platform()
  const canceled: string[] = []
  let failure: unknown
  for (const id of ids) {
    try {
      const { workspace_id: workspaceId, task_id: taskId } = await readStory(client, id)
      await client.cancelTask(workspaceId, taskId)
      canceled.push(taskId)
    } catch (thrown) {
      failure ??= thrown
    }
  }
  if (canceled.length > 0) await show({ canceled }, () => canceled.map((id) => `canceled ${id}\n`).join(''))
  if (failure !== undefined) throw failure
}

function parseState(text: string): TaskState {
  const state = STATES.get(text.toLowerCase().replaceAll(/[_-]/g, ' '))
  if (state !== undefined) return state
  throw new MoleculeError(
    'invalid_request',
    `there is no state "${text}"; the states are ${[...STATES.keys()].join(', ')}`,
  )
}

function parseCount(text: string): number {
  const count = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (count >= 1 && count <= TASKS_MAX) return count
  throw new MoleculeError('invalid_request', `-n takes a number from 1 to ${TASKS_MAX}, not ${JSON.stringify(text)}`)
}
