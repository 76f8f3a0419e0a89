/**
 * Tasks and messages by id alone, for a caller that does not know the workspace: the task, its artifacts as files, the story
 * of a message. With them the trees of delegations. A caller that may not see a task receives `not_found`.
 */
import { z } from 'zod'
import { TASK_STATES } from '../protocol/a2a.ts'
import { contentOf, endpoint } from './endpoint.ts'
import { messageSchema, metadataSchema, partSchema, senderSchema } from './message.ts'
import { usageSumSchema } from './usage.ts'

/** A task as A2A 1.0 has it. */
const taskSchema = z.strictObject({
  id: z.string(),
  contextId: z.string(),
  status: z.strictObject({
    state: z.enum(TASK_STATES),
    message: messageSchema.exactOptional(),
    timestamp: z.string().exactOptional(),
  }),
  artifacts: z
    .array(
      z.strictObject({
        artifactId: z.string(),
        name: z.string().exactOptional(),
        description: z.string().exactOptional(),
        parts: z.array(partSchema),
        metadata: metadataSchema.exactOptional(),
        extensions: z.array(z.string()).exactOptional(),
      }),
    )
    .exactOptional(),
  history: z.array(messageSchema).exactOptional(),
  metadata: metadataSchema.exactOptional(),
})

const taskBudgetSchema = z.strictObject({
  max_cost_usd: z.number(),
  cost_usd: z.number(),
  unknown_turns: z.number(),
  state: z.enum(['open', 'asked', 'stopped']),
  task_id: z.string(),
})

const taskTreeSchema = z.strictObject({
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
      usage: usageSumSchema.optional(),
      text: z.string().describe('The first words of its message.'),
    }),
  ),
  budget: taskBudgetSchema.optional().describe('Of the first message; for admins and members.'),
  hidden: z.number().describe('Tasks that the caller may not see.'),
})

const storySchema = z.strictObject({
  message_id: z.string(),
  task_id: z.string(),
  workspace_id: z.string(),
  context_id: z.string(),
  sender: senderSchema,
  sender_message_id: z.string().describe('The id that the sender gave the message.'),
  text: z.string(),
  task_state: z.enum(TASK_STATES),
  steps: z.array(
    z.strictObject({
      at: z.string(),
      type: z
        .string()
        .describe(
          'admitted, started, progress, delegated, budget, asked, permission, resumed, failed, lost, answered, ended, late, waiting, running, replayed, discarded.',
        ),
      text: z.string(),
    }),
  ),
  deliveries: z
    .array(z.strictObject({ to: z.string(), state: z.string(), tries: z.number(), error: z.string().optional() }))
    .describe('What was pushed because of the message: by a door, or to a webhook of its task.'),
  tree: taskTreeSchema
    .optional()
    .describe('Where the message delegated, or was delegated itself; in the first part of a story only.'),
  budgets: z
    .array(taskBudgetSchema)
    .optional()
    .describe('The budgets of messages that cover it, the outermost first; in the first part of a story only.'),
  next: z.string().optional(),
})

export const listDelegations = endpoint('GET /workspaces/{id}/delegations', {
  access: 'activity.read',
  reach: 'own',
  summary: 'The trees of delegations that the workspace is in, the latest first; "limit" and "after" read a page',
  query: z.object({ limit: z.int().min(1).max(20).default(10), after: z.string().optional() }),
  success: [200, 'The trees, each task right below its parent, and "next" where there may be more'],
  answer: z.strictObject({ trees: z.array(taskTreeSchema), next: z.string().optional() }),
})

export const listOpenDelegations = endpoint('GET /delegations/open', {
  access: 'dead-letter.read',
  summary: 'Which workspaces work for which others now: pairs of ids with the number of unfinished delegations',
  success: [200, 'The pairs, at most 500, the most delegations first'],
  answer: z.strictObject({
    delegations: z.array(z.strictObject({ from: z.string(), to: z.string(), count: z.number() })),
  }),
})

export const readTask = endpoint('GET /tasks/{id}', {
  access: 'task.read',
  summary: 'A task by its id alone',
  success: [200, 'The task'],
  answer: taskSchema,
})

export const readArtifact = endpoint('GET /tasks/{id}/artifacts/{artifact}', {
  access: 'task.read',
  summary: 'An artifact of a task as a file; "part" chooses one of several parts',
  query: z.object({
    part: z
      .string()
      .regex(/^\d{1,6}$/, 'must be the number of a part, from 0')
      .optional(),
  }),
  success: [200, 'The file'],
  answer: contentOf('*/*'),
})

export const readStory = endpoint('GET /messages/{id}/story', {
  access: 'task.read',
  summary:
    'The story of a message, found by its id, its task id or the id that its sender gave it, with its tree of delegations; "after" reads the next part',
  query: z.object({ after: z.string().optional() }),
  success: [200, 'The story, and "next" where it goes on'],
  answer: storySchema,
})

export const taskEndpoints = [listDelegations, listOpenDelegations, readTask, readArtifact, readStory] as const
