/**
 * Tasks and messages by id alone, for a caller that does not know the workspace: the task, and the story of a message.
 * A caller that may not see the task receives `not_found`.
 */
import { z } from 'zod'
import { MoleculeError } from '../../../errors.ts'
import type { Story, StoryBudget, TaskTree } from '../../../inbox/readers.ts'
import { TASK_STATES } from '../../../protocol/a2a.ts'
import type { Spending } from '../../../usd.ts'
import { markRead } from '../../mark-read.ts'
import { taskScope, taskViewsOf } from '../server/auth.ts'
import { readQueryNumber } from '../server/query.ts'
import { requireWorkspace } from '../server/reach.ts'
import { route } from './route.ts'
import { usageSchema, viewSum } from './usage.ts'

const budgetSchema = z.strictObject({
  max_cost_usd: z.number(),
  cost_usd: z.number(),
  unknown_turns: z.number(),
  state: z.enum(['open', 'asked', 'stopped']),
  task_id: z.string(),
})

const treeSchema = z.strictObject({
  cost_usd: z.number().optional().describe('Of the whole tree; for admins and members.'),
  unknown_turns: z.number().optional(),
  tasks: z.array(
    z.strictObject({
      task_id: z.string(),
      parent_task_id: z.string().nullable(),
      depth: z.number(),
      workspace_id: z.string(),
      workspace_name: z.string().nullable(),
      state: z.enum(TASK_STATES),
      turns: z.number(),
      sent_at: z.string().optional(),
      started_at: z.string().optional(),
      ended_at: z.string().optional(),
      usage: usageSchema.optional(),
      text: z.string().describe('The first words of its message.'),
    }),
  ),
  budget: budgetSchema.optional().describe('Of the first message; for admins and members.'),
  hidden: z.number().describe('Tasks that the caller may not see.'),
})

const TREES_DEFAULT = 10
const TREES_MAX = 20

export const taskRoutes = [
  route({
    method: 'get',
    path: '/workspaces/:id/delegations',
    access: 'activity.read',
    reach: 'own',
    summary: 'The trees of delegations that the workspace is in, the latest first; "limit" and "after" read a page',
    success: [200, 'The trees, each task right below its parent, and "next" where there may be more'],
    answer: z.strictObject({ trees: z.array(treeSchema), next: z.string().optional() }),
    async handle({ context, identity }, { stories, workspaces }) {
      const { id: workspaceId } = await requireWorkspace(workspaces, context.req.param('id'))
      const limit = readQueryNumber(context, 'limit', { min: 1, max: TREES_MAX }) ?? TREES_DEFAULT
      const after = context.req.query('after')
      const page = await stories.trees({
        workspaceId,
        limit,
        scopeOf: (id: string) => taskScope(identity, id),
        ...(after !== undefined && { after }),
      })
      return context.json({ trees: page.trees.map(viewTree), ...(page.next !== undefined && { next: page.next }) })
    },
  }),
  route({
    method: 'get',
    path: '/tasks/:id',
    access: 'task.read',
    summary: 'A task by its id alone',
    success: [200, 'The task'],
    async handle({ context, identity }, { reception }) {
      const id = context.req.param('id')
      for (const view of taskViewsOf(identity)) {
        const task = await reception.task(id, view)
        if (task === undefined) continue
        await markRead(reception, { identity, response: context.env.outgoing }, task)
        return context.json(task)
      }
      throw new MoleculeError('not_found', `there is no task ${id}`)
    },
  }),
  route({
    method: 'get',
    path: '/messages/:id/story',
    access: 'task.read',
    summary:
      'The story of a message, found by its id, its task id or the id that its sender gave it, with its tree of delegations; "after" reads the next part',
    success: [200, 'The story, and "next" where it goes on'],
    async handle({ context, identity }, { stories }) {
      const id = context.req.param('id')
      const after = context.req.query('after')
      const story = await stories.find({
        id,
        scopeOf: (workspaceId) => taskScope(identity, workspaceId),
        ...(after !== undefined && { after }),
      })
      if (story === undefined) throw new MoleculeError('not_found', `there is no message or task ${id}`)
      return context.json(viewStory(story))
    },
  }),
]

function viewStory({ steps, ...story }: Story) {
  return {
    message_id: story.messageId,
    task_id: story.taskId,
    workspace_id: story.workspaceId,
    context_id: story.contextId,
    sender: story.sender,
    sender_message_id: story.senderMessageId,
    text: story.text,
    task_state: story.taskState,
    steps: steps.map(({ atMs, ...step }) => ({ at: new Date(atMs).toISOString(), ...step })),
    deliveries: story.deliveries,
    ...(story.tree !== undefined && { tree: viewTree(story.tree) }),
    ...(story.budgets !== undefined && { budgets: story.budgets.map(viewBudget) }),
    ...(story.next !== undefined && { next: story.next }),
  }
}

const viewSpending = ({ costUsd, unknownTurns }: Spending) => ({ cost_usd: costUsd, unknown_turns: unknownTurns })

const viewBudget = (budget: StoryBudget) => ({
  max_cost_usd: budget.limitUsd,
  ...viewSpending(budget),
  state: budget.state,
  task_id: budget.taskId,
})

const instant = (ms: number): string => new Date(ms).toISOString()

const viewTree = ({ tasks, hidden, spent, budget }: TaskTree) => ({
  ...(budget !== undefined && { budget: viewBudget(budget) }),
  ...(spent !== undefined && viewSpending(spent)),
  tasks: tasks.map((task) => ({
    task_id: task.taskId,
    parent_task_id: task.parentTaskId ?? null,
    depth: task.depth,
    workspace_id: task.workspaceId,
    workspace_name: task.workspaceName ?? null,
    state: task.state,
    turns: task.turns,
    ...(task.admittedAtMs !== undefined && { sent_at: instant(task.admittedAtMs) }),
    ...(task.startedAtMs !== undefined && { started_at: instant(task.startedAtMs) }),
    ...(task.endedAtMs !== undefined && { ended_at: instant(task.endedAtMs) }),
    text: task.text,
    ...(task.usage !== undefined && { usage: viewSum(task.usage) }),
  })),
  hidden,
})
