/**
 * Tasks and messages by id alone, for a caller that does not know the workspace: the task, and the story of a message.
 * A caller that may not see the task receives `not_found`.
 */
import type { z } from 'zod'
import type { Frozen } from '../../../api/endpoint.ts'
import {
  listDelegations,
  readStory,
  readTask,
  type storySchema,
  type taskBudgetSchema,
  type taskTreeSchema,
} from '../../../api/tasks.ts'
import { MoleculeError } from '../../../errors.ts'
import type { Story, StoryBudget, TaskTree } from '../../../inbox/readers.ts'
import { markRead } from '../../mark-read.ts'
import { taskScope, taskViewsOf } from '../server/auth.ts'
import { requireWorkspace } from '../server/reach.ts'
import { serve } from './route.ts'
import { viewSum } from './usage.ts'

export const taskRoutes = [
  serve(listDelegations, async ({ params, query, identity }, { stories, workspaces }) => {
    await requireWorkspace(workspaces, params.id)
    const { limit, after } = query
    const page = await stories.trees({
      workspaceId: params.id,
      limit,
      scopeOf: (id: string) => taskScope(identity, id),
      ...(after !== undefined && { after }),
    })
    return { trees: page.trees.map(viewTree), next: page.next }
  }),
  serve(readTask, async ({ context, params: { id }, identity }, { reception }) => {
    for (const view of taskViewsOf(identity)) {
      const task = await reception.task(id, view)
      if (task === undefined) continue
      await markRead(reception, { identity, response: context.env.outgoing }, task)
      return task
    }
    throw new MoleculeError('not_found', `there is no task ${id}`)
  }),
  serve(readStory, async ({ params: { id }, query: { after }, identity }, { stories }) => {
    const story = await stories.find({
      id,
      scopeOf: (workspaceId) => taskScope(identity, workspaceId),
      ...(after !== undefined && { after }),
    })
    if (story === undefined) throw new MoleculeError('not_found', `there is no message or task ${id}`)
    return viewStory(story)
  }),
]

const instant = (ms: number): string => new Date(ms).toISOString()
const instantOf = (ms: number | undefined): string | undefined => (ms === undefined ? undefined : instant(ms))

const viewStory = (story: Story): Frozen<z.output<typeof storySchema>> => ({
  message_id: story.messageId,
  task_id: story.taskId,
  workspace_id: story.workspaceId,
  context_id: story.contextId,
  sender: story.sender,
  sender_message_id: story.senderMessageId,
  text: story.text,
  task_state: story.taskState,
  steps: story.steps.map(({ atMs, type, text }) => ({ at: instant(atMs), type, text })),
  deliveries: story.deliveries,
  tree: story.tree && viewTree(story.tree),
  budgets: story.budgets?.map(viewBudget),
  next: story.next,
})

const viewBudget = (budget: StoryBudget): z.output<typeof taskBudgetSchema> => ({
  max_cost_usd: budget.limitUsd,
  cost_usd: budget.costUsd,
  unknown_turns: budget.unknownTurns,
  state: budget.state,
  task_id: budget.taskId,
})

const viewTree = ({ tasks, hidden, spent, budget }: TaskTree): z.output<typeof taskTreeSchema> => ({
  budget: budget && viewBudget(budget),
  cost_usd: spent?.costUsd,
  unknown_turns: spent?.unknownTurns,
  tasks: tasks.map((task) => ({
    task_id: task.taskId,
    parent_task_id: task.parentTaskId ?? null,
    depth: task.depth,
    workspace_id: task.workspaceId,
    workspace_name: task.workspaceName ?? null,
    state: task.state,
    turns: task.turns,
    sent_at: instantOf(task.admittedAtMs),
    started_at: instantOf(task.startedAtMs),
    ended_at: instantOf(task.endedAtMs),
    text: task.text,
    usage: task.usage && viewSum(task.usage),
  })),
  hidden,
})
