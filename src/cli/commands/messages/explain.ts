/**
 * `molecule explain`: the story of one message. The platform finds it by the id of the message or its task, or by the id
 * that the sender gave it. Any other id (of a request, of an error) is searched in the log on this machine.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readStory, type StoryView } from '../../../client/story.ts'
import { MoleculeError } from '../../../errors.ts'
import { withoutControls } from '../../../printable.ts'
import { taskStateText } from '../../../protocol/a2a.ts'
import { spendingText, usdText } from '../../../usd.ts'
import type { CommandContext, DefineCommand } from '../../command-context.ts'
import { logFilesOf } from '../../data-folder/log-file.ts'
import { formatLogLineWithTime, LOG_FILE } from '../../data-folder/log-format.ts'
import { workspaceNameOf } from '../../platform/platform-access.ts'
import { renderFields } from '../../terminal/output.ts'

export const define: DefineCommand = (command, openContext) => {
  command
    .argument('<id>', 'id of a message, a task, a request (X-Request-Id) or an error')
    .action(async (id: string) => explain(await openContext(), id))
}

async function explain(context: CommandContext, id: string): Promise<void> {
  const story = await readStory(context.platform(), id).catch((thrown: unknown) => {
    if (thrown instanceof MoleculeError && thrown.code === 'not_found') return undefined
    throw thrown
  })
  if (story !== undefined) {
    const name = await workspaceNameOf(context.platform(), story.workspace_id)
    return await context.show(story, () => renderStory(story, name))
  }
  const lines = await logLinesWith(context.dataDir, id)
  if (lines.length === 0) {
    const message = `nothing is known of "${id}": it is no message or task, and no line of the log on this machine has it`
    throw new MoleculeError('not_found', message)
  }
  await context.show(
    lines.map((line) => JSON.parse(line) as unknown),
    () => lines.map(formatLogLineWithTime).join(''),
  )
}

function renderStory({ steps, deliveries, tree, budgets = [], ...story }: StoryView, workspace: string): string {
  const { kind, name, door } = story.sender
  const head = renderFields([
    ['message', `${story.message_id} (the sender calls it ${story.sender_message_id})`],
    ['task', `${story.task_id}, ${taskStateText(story.task_state)}`],
    ['workspace', `${workspace} (${story.workspace_id})`],
    ['from', `${kind} ${name} by ${door}`],
    ['text', story.text],
    ...budgets.map((budget): [string, string] => ['budget', budgetText(budget)]),
  ])
  const stepLines = steps.map(({ at, text }) => `${at}  ${withoutControls(text)}\n`).join('')
  const deliveryLines = deliveries.map(({ to, state, tries, error }) => {
    if (state === 'silent') return `nothing was sent to ${to}: the whole answer is NO_REPLY\n`
    const why = error === undefined ? '' : `: ${withoutControls(error)}`
    return `delivery to ${to} is ${state} after ${tries} ${tries === 1 ? 'try' : 'tries'}${why}\n`
  })
  const parts = [stepLines, deliveryLines.join(''), tree === undefined ? '' : renderTree(tree, story.task_id)]
  return [head, ...parts.filter((part) => part !== '')].join('\n')
}

function budgetText(budget: NonNullable<StoryView['budgets']>[number]): string {
  const { max_cost_usd: limit, cost_usd: costUsd, unknown_turns: unknownTurns, state } = budget
  const now = BUDGET_STATES[state] ?? ''
  return `${spendingText({ costUsd, unknownTurns })} of ${usdText(limit)} spent${now} (task ${budget.task_id})`
}

const BUDGET_STATES: Readonly<Record<string, string>> = {
  asked: '; the owner is asked to raise it or to stop',
  stopped: '; the owner stopped it',
}

/** One line for each task, indented below its parent; `*` marks the task itself. */
function renderTree(
  { tasks, hidden, cost_usd: costUsd, unknown_turns: unknownTurns = 0 }: NonNullable<StoryView['tree']>,
  own: string,
): string {
  const lines = tasks.map(({ task_id: id, depth, workspace_id: workspaceId, workspace_name: name, state, turns }) => {
    const indent = '  '.repeat(depth)
    const work = `${taskStateText(state)}, ${turns} ${turns === 1 ? 'turn' : 'turns'}`
    return `${id === own ? '*' : ' '} ${indent}${withoutControls(name ?? workspaceId)}  ${work}  ${id}\n`
  })
  const more = hidden === 0 ? '' : `  and ${hidden} that you may not see\n`
  const isFree = costUsd === undefined || (costUsd === 0 && unknownTurns === 0)
  return `delegations${isFree ? '' : ` (${spendingText({ costUsd, unknownTurns })})`}:\n${lines.join('')}${more}`
}

/** Later lines are left out. */
const LINES_MAX = 200

/** Searches the oldest file first, so the oldest lines come first. */
async function logLinesWith(dataDir: string, id: string): Promise<string[]> {
  const { createReadStream } = await import('node:fs')
  const { createInterface } = await import('node:readline')
  const found: string[] = []
  for (const path of logFilesOf(join(dataDir, LOG_FILE)).toReversed()) {
    if (!existsSync(path)) continue
    for await (const line of createInterface({ input: createReadStream(path) })) {
      if (line.includes(JSON.stringify(id)) && found.length < LINES_MAX) found.push(line)
    }
  }
  return found
}
