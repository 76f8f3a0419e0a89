/**
 * What the platform says about itself and its machine: health, readiness, version, API document, metrics, agents, folders.
 * Health and readiness need no token, because a supervisor or a load balancer has none. So they show only what a port scan
 * would show.
 */
import { z } from 'zod'
import { contentOf, endpoint } from './endpoint.ts'

export const readHealth = endpoint('GET /health', {
  access: 'open',
  summary: 'Whether the platform is alive',
  success: [200, 'It is alive'],
  answer: z.strictObject({
    status: z.string().describe('Always "ok".'),
    name: z.string(),
    version: z.string(),
    pid: z.int(),
  }),
})

export const readReadiness = endpoint('GET /ready', {
  access: 'open',
  summary: 'Whether the platform accepts work',
  success: [200, 'It accepts work; 503 with the reason when it does not'],
  answer: z.strictObject({ status: z.string().describe('"ready" or "not_ready".'), reason: z.string().optional() }),
})

export const readVersion = endpoint('GET /version', {
  access: 'platform.read',
  summary: 'Name and version',
  success: [200, 'Name and version, and "public_url" where the owner has set one'],
  answer: z.strictObject({
    name: z.string(),
    version: z.string(),
    node: z.string(),
    a2a: z.array(z.string()).describe('The versions of A2A that are served.'),
    public_url: z.string().optional().describe('Where other machines reach the platform.'),
  }),
})

export const readApiDocument = endpoint('GET /openapi.json', {
  access: 'platform.read',
  summary: 'This document',
  success: [200, 'This document'],
  answer: z.looseObject({ openapi: z.string() }),
})

export const readMetrics = endpoint('GET /metrics', {
  access: 'metrics.read',
  summary: 'Counters and load in the format of Prometheus',
  success: [200, 'The metrics'],
  answer: contentOf('text/plain'),
})

export const listAgents = endpoint('GET /agents', {
  access: 'agent.read',
  summary: 'The agents that Molecule knows: installed, version, logged in, and what to do where something is missing',
  success: [200, 'The agents; one without "version" is still asked for it'],
  answer: z.strictObject({
    agents: z.array(
      z.strictObject({
        backend: z.string(),
        program: z.string(),
        installed: z.boolean(),
        path: z.string().optional(),
        version: z.string().optional(),
        problem: z.string().optional(),
        logged_in: z.boolean(),
        pays: z.string().optional().describe('What pays for its model, such as a variable or a log-in.'),
        remedy: z.string().optional(),
        warm: z.boolean(),
      }),
    ),
  }),
})

const folderSchema = z.strictObject({ name: z.string(), path: z.string(), is_git: z.boolean() })

export const listFolders = endpoint('GET /folders', {
  access: 'folder.read',
  summary: 'The folders in "path", an absolute path on the machine of the platform; the home of its user by default',
  query: z.object({ path: z.string().default('') }),
  success: [200, 'The folders, and whether each is a git repository'],
  answer: z.strictObject({
    path: z.string(),
    /** Null at the root. */
    parent: z.string().nullable(),
    home: z.string(),
    is_git: z.boolean(),
    folders: z.array(folderSchema),
    /** Those whose name begins with a dot. */
    hidden: z.array(folderSchema),
    /** There are more than are listed. */
    truncated: z.boolean(),
  }),
})

export const platformEndpoints = [
  readHealth,
  readReadiness,
  readVersion,
  readApiDocument,
  readMetrics,
  listAgents,
  listFolders,
] as const
