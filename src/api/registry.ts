/** The registry: workspaces that run elsewhere register and send heartbeats, and a workspace finds its peers. */
import { z } from 'zod'
import { endpoint } from './endpoint.ts'
import { workspaceSchema } from './workspaces.ts'

const TASK_CHARACTERS_MAX = 500
const WORD_CHARACTERS_MAX = 200
const TASKS_MAX = 100_000

/** A report with more is refused: people read each of them. */
export const LIMITS_MAX = 10

export const reportSchema = z.strictObject({
  workspace_id: z.string().min(1).max(WORD_CHARACTERS_MAX),
  current_task: z.string().max(TASK_CHARACTERS_MAX).optional(),
  active_tasks: z.int().min(0).max(TASKS_MAX).optional(),
  error_rate: z.number().min(0).max(1).optional(),
  runtime_state: z.string().max(WORD_CHARACTERS_MAX).optional(),
  uptime_seconds: z.number().min(0).optional(),
  problem: z.string().max(TASK_CHARACTERS_MAX).optional(),
  limits: z.array(z.string().max(TASK_CHARACTERS_MAX)).max(LIMITS_MAX).optional(),
})

export const reportedSchema = z.strictObject({
  id: z.string(),
  status: workspaceSchema.shape.status,
  status_reason: z.string().nullable(),
  queue_depth: z.number(),
  heartbeat_seconds: z.number().describe('When to send the next heartbeat.'),
})

export const peerSchema = z.strictObject({
  id: z.string(),
  name: z.string(),
  role: z.string(),
  runtime: z.string(),
  status: workspaceSchema.shape.status,
  status_reason: z.string().nullable(),
  parent_id: z.string().nullable(),
  url: z.string().describe('Where its A2A messages are sent.'),
  card_url: z.string().describe('Where its A2A card is read.'),
})

export const registerWorkspace = endpoint('POST /registry/register', {
  access: 'registry.report',
  body: { schema: reportSchema, name: 'a report' },
  summary: 'Register a workspace that runs elsewhere',
  success: [200, 'The status, and when to send the next heartbeat'],
  answer: reportedSchema,
})

export const sendHeartbeat = endpoint('POST /registry/heartbeat', {
  access: 'registry.report',
  body: { schema: reportSchema, name: 'a report' },
  summary: 'Report that it still runs, and its state',
  success: [200, 'The status, and when to send the next heartbeat'],
  answer: reportedSchema,
})

export const discoverWorkspace = endpoint('GET /registry/discover/{id}', {
  access: 'workspace.read',
  reach: 'reachable',
  summary: 'The address of a workspace',
  success: [200, 'The workspace with its URLs'],
  answer: peerSchema,
})

export const listPeers = endpoint('GET /registry/{id}/peers', {
  access: 'registry.peers',
  reach: 'own',
  summary: 'The workspaces that this workspace may talk to',
  success: [200, 'The peers with their URLs'],
  answer: z.strictObject({ peers: z.array(peerSchema) }),
})

export const registryEndpoints = [registerWorkspace, sendHeartbeat, discoverWorkspace, listPeers] as const
