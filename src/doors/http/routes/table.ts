/**
 * Every route of this door as data: what it is for, who may use it, what it takes. The API document is made of it, and
 * the tests that try every route with every kind of token and with broken bodies are made of the document. A route that
 * is served and not listed here fails the suite.
 */
import { z } from 'zod'
import { sendMessageParamsSchema } from '../../../protocol/schemas.ts'
import { CARD_PATH } from '../a2a/card-route.ts'
import { A2A_ACTIONS } from '../a2a/methods.ts'
import { restRoutes } from '../a2a/rest.ts'
import type { Action } from '../server/auth.ts'
import { WS_PATH } from '../socket/sockets.ts'
import { noteSchema } from './activity.ts'
import { appendSchema, askSchema, extendSchema, leaseSchema, settleSchema, suspendSchema } from './inbox-schema.ts'
import { loginSchema } from './login.ts'
import { decisionSchema } from './pending-asks.ts'
import { reportSchema } from './registry.ts'
import { statusSchema } from './status.ts'
import { newTokenSchema, rotationSchema } from './token-schema.ts'
import { newWorkspaceSchema, workspaceChangeSchema } from './workspace-schema.ts'

export interface Route {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete'
  /** As the router has it: `/workspaces/:id`. */
  readonly path: string
  readonly summary: string
  /** What its caller must be allowed to do; open = needs no token; a2a = each JSON-RPC method has its own rule. */
  readonly access: Action | 'open' | 'a2a'
  /** Of a JSON body. A route that reads one and does not say so would escape the fuzzing. */
  readonly body?: z.ZodType
  readonly bodyOptional?: true
  /** The status of success, and what it brings. */
  readonly success: readonly [status: number, description: string]
  /** The A2A method that a route of the REST binding is. */
  readonly a2aMethod?: string
}

const workspacePath = '/workspaces/:id'
const filePath = `${workspacePath}/files/:path{.+}`
const deadLettersPath = `${workspacePath}/dead-letters`

const REST_BODIES: Readonly<Record<string, z.ZodType>> = {
  SendMessage: sendMessageParamsSchema,
  SendStreamingMessage: sendMessageParamsSchema,
}

export const ROUTES: readonly Route[] = [
  pageRoute('/', 'The canvas'),
  pageRoute('/page.js', 'The script of the page'),
  pageRoute('/page.css', 'The style of the page'),
  pageRoute('/icon.svg', 'The icon of the page'),
  {
    method: 'post',
    path: '/login',
    summary: 'Trade a single-use code for a session cookie',
    access: 'open',
    body: loginSchema,
    success: [204, 'The cookie'],
  },
  {
    method: 'post',
    path: '/logout',
    summary: 'End the session of the cookie',
    access: 'open',
    success: [204, 'The cookie is cleared'],
  },
  { method: 'get', path: '/health', summary: 'Is it alive', access: 'open', success: [200, 'It is'] },
  { method: 'get', path: '/ready', summary: 'Does it take work', access: 'open', success: [200, 'It does'] },
  readRoute('/version', 'Name and version', 'platform.read'),
  readRoute('/metrics', 'Counters and load, as Prometheus reads them', 'metrics.read'),
  readRoute('/openapi.json', 'This document', 'platform.read'),
  {
    method: 'post',
    path: '/tokens',
    summary: 'Make a token; the secret is in this answer only',
    access: 'token.handle',
    body: newTokenSchema,
    success: [201, 'Its id and secret'],
  },
  readRoute('/tokens', 'All tokens and sessions, without their secrets', 'token.handle'),
  {
    method: 'post',
    path: '/tokens/:id/rotate',
    summary: 'A new secret at once; the old one stays good for the overlap',
    access: 'token.handle',
    body: rotationSchema,
    bodyOptional: true,
    success: [200, 'Its id and new secret'],
  },
  removeRoute('/tokens/:id', 'Revoke a token; its open streams and waiting calls end', 'token.handle'),
  {
    method: 'post',
    path: '/workspaces',
    summary: 'Make a workspace',
    access: 'workspace.create',
    body: newWorkspaceSchema,
    success: [201, 'The workspace'],
  },
  readRoute('/workspaces', 'The workspaces that the token reaches', 'workspace.read'),
  readRoute(workspacePath, 'One workspace', 'workspace.read'),
  {
    method: 'post',
    path: `${workspacePath}/a2a`,
    summary: 'A2A JSON-RPC of 1.0 and 0.3',
    access: 'a2a',
    success: [200, 'A JSON-RPC answer'],
  },
  ...restBinding(),
  {
    method: 'get',
    path: `${workspacePath}/a2a${CARD_PATH}`,
    summary: 'The agent card',
    access: 'open',
    success: [200, 'The card'],
  },
  {
    method: 'patch',
    path: workspacePath,
    summary: 'Change a workspace; what is not said stays',
    access: 'workspace.change',
    body: workspaceChangeSchema,
    success: [200, 'The workspace'],
  },
  {
    method: 'delete',
    path: workspacePath,
    summary: 'Delete a workspace; needs its name or id as confirm in the query, and cascade=true for those below it',
    access: 'workspace.delete',
    success: [200, 'The ids that are gone'],
  },
  workspaceActionRoute(
    'restart',
    'Begin the next turn with a new backend, and check whether it can run',
    'workspace.restart',
  ),
  workspaceActionRoute(
    'pause',
    'Keep the queue and begin no turn; now=true also stops those that run',
    'workspace.pause',
  ),
  workspaceActionRoute('resume', 'Go on after a pause', 'workspace.pause'),
  readRoute(`${workspacePath}/files`, 'The files of the configuration folder', 'file.read'),
  readRoute(filePath, 'One file', 'file.read'),
  {
    method: 'put',
    path: filePath,
    summary: 'Write a file: the body as it is',
    access: 'file.write',
    success: [201, 'Its path and size; 200 when it was there'],
  },
  removeRoute(filePath, 'Remove a file', 'file.write'),
  readRoute(
    `${workspacePath}/activity`,
    'What happened, after the number since; type and limit choose, newest=true the last ones',
    'activity.read',
  ),
  readRoute(
    '/tasks/:id/artifacts/:artifact',
    'An artifact of a task, as a file; part chooses one of several',
    'task.read',
  ),
  {
    method: 'post',
    path: `${workspacePath}/activity`,
    summary: 'Add a note to what happened',
    access: 'activity.report',
    body: noteSchema,
    success: [201, 'Its number'],
  },
  readRoute(
    `${workspacePath}/events`,
    'All of its log as server-sent events, after Last-Event-ID or from now',
    'activity.read',
  ),
  inboxRoute('lease', 'Wait for messages to run, each with its brief; says what the bridge holds', leaseSchema),
  inboxRoute('extend', 'Renew leases; how each stands', extendSchema),
  inboxRoute('append', 'What a turn tells while it runs; how its lease stands', appendSchema),
  inboxRoute('settle', 'Close a lease with its outcome', settleSchema),
  inboxRoute('suspend', 'A turn waits and gives up its slot', suspendSchema),
  inboxRoute('resume', 'Its wait is over', suspendSchema),
  inboxRoute('ask', 'Put a question of a turn to whoever sent its task', askSchema),
  {
    method: 'get',
    path: WS_PATH,
    summary: 'Events of many workspaces over a WebSocket; a request that asks for no upgrade is told so',
    access: 'activity.read',
    success: [101, 'The socket'],
  },
  registryReportRoute('register', 'A workspace that runs elsewhere is there'),
  registryReportRoute('heartbeat', 'It is still there, and how it does'),
  readRoute('/registry/discover/:id', 'Where a workspace is reached', 'workspace.read'),
  readRoute('/registry/:id/peers', 'The workspaces that one may talk to', 'registry.peers'),
  readRoute('/pending', 'What running turns ask permission for; workspace_id chooses', 'pending.read'),
  {
    method: 'post',
    path: '/pending/:id',
    summary: 'Allow or deny exactly that, once',
    access: 'pending.answer',
    body: decisionSchema,
    success: [200, 'The decision'],
  },
  {
    method: 'put',
    path: `${workspacePath}/status`,
    summary: 'What the workspace says it is doing; an empty text takes it away',
    access: 'status.report',
    body: statusSchema,
    success: [200, 'The text as it is shown'],
  },
  readRoute('/tasks/:id', 'A task by its id alone', 'task.read'),
  readRoute(
    '/messages/:id/story',
    'What became of a message; its id, its task or the id that its sender gave it',
    'task.read',
  ),
  readRoute(`${workspacePath}/usage`, 'What its turns used, by day and by message', 'activity.read'),
  readRoute(deadLettersPath, 'What has failed for good', 'dead-letter.read'),
  {
    method: 'post',
    path: `${deadLettersPath}/:message/replay`,
    summary: 'Send a dead letter again',
    access: 'dead-letter.handle',
    success: [200, 'The new task'],
  },
  removeRoute(`${deadLettersPath}/:message`, 'Let a dead letter go', 'dead-letter.handle'),
]

/** The REST binding of A2A: each route of it whose method is served. */
function restBinding(): Route[] {
  return restRoutes().flatMap(([http, below, name]): Route[] => {
    const access = A2A_ACTIONS.get(name)
    if (access === undefined) return []
    const summary = `A2A 1.0 REST: ${name}`
    const body = http === 'POST' && { body: REST_BODIES[name] ?? z.looseObject({}), bodyOptional: true as const }
    const method = http.toLowerCase() as Route['method']
    const path = `${workspacePath}/a2a${below.replaceAll(/\{(\w+)\}/g, ':$1')}`
    return [{ method, path, summary, access, success: [200, 'The result'], a2aMethod: name, ...body }]
  })
}

function pageRoute(path: string, summary: string): Route {
  return { method: 'get', path, summary, access: 'open', success: [200, summary] }
}

function readRoute(path: string, summary: string, access: Action): Route {
  return { method: 'get', path, summary, access, success: [200, summary] }
}

function workspaceActionRoute(name: string, summary: string, access: Action): Route {
  return { method: 'post', path: `${workspacePath}/${name}`, summary, access, success: [200, 'The workspace'] }
}

function inboxRoute(name: string, summary: string, body: z.ZodType): Route {
  const path = `${workspacePath}/inbox/${name}`
  return { method: 'post', path, summary, access: 'inbox.work', body, success: [200, 'How it stands'] }
}

function registryReportRoute(name: string, summary: string): Route {
  const success = [200, 'How it stands, and when to be heard again'] as const
  return { method: 'post', path: `/registry/${name}`, summary, access: 'registry.report', body: reportSchema, success }
}

function removeRoute(path: string, summary: string, access: Action): Route {
  return { method: 'delete', path, summary, access, success: [204, 'Done'] }
}
