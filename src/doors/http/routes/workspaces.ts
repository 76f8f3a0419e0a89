/**
 * Workspaces over HTTP: create, list, read, change, delete, restart, pause, stop, resume. Deleting needs the workspace's name
 * or id a second time, because it cannot be undone. The wire format of a workspace is in `workspace-schema.ts`.
 */
import { z } from 'zod'
import { tokenViewSchema } from '../../../api/tokens.ts'
import { MoleculeError, toMoleculeError } from '../../../errors.ts'
import type { TokenInfo, Tokens } from '../../../workspaces/tokens.ts'
import {
  type BackendCheck,
  isExternal,
  type Workspace,
  type WorkspaceLifecycle,
  type Workspaces,
} from '../../../workspaces/workspace.ts'
import { readQueryFlag, readQueryNumber } from '../server/query.ts'
import { listReachable, requireWorkspace } from '../server/reach.ts'
import { route } from './route.ts'
import { viewToken } from './tokens.ts'
import {
  newWorkspaceSchema,
  toNewWorkspace,
  toWorkspaceChange,
  viewWorkspace,
  viewWorkspaceFor,
  type WorkspaceView,
  workspaceChangeSchema,
  workspaceViewSchema,
} from './workspace-schema.ts'

/** Workspaces of one page. */
const WORKSPACES_LISTED = 100
const WORKSPACES_LISTED_MAX = 1000

const stoppedSchema = z.strictObject({
  stopped: z.array(
    z.strictObject({
      id: z.string(),
      name: z.string(),
      /** Ids of the cancelled tasks. */
      canceled: z.array(z.string()),
      queue_depth: z.number(),
    }),
  ),
  failed: z.array(z.strictObject({ id: z.string(), name: z.string(), message: z.string() })),
})

const connectCommandSchema = z.strictObject({
  auth_token: z.string(),
  connect: z.string(),
  earlier_tokens: z.array(tokenViewSchema),
})

export const workspaceRoutes = [
  route({
    method: 'post',
    path: '/workspaces',
    access: 'workspace.create',
    body: { schema: newWorkspaceSchema, name: 'a workspace' },
    summary: 'Create a workspace; dry_run=true only checks the body',
    success: [201, 'The workspace, and "warnings" where a setting has no effect or the name is taken'],
    async handle({ context, body }, { workspaces, tokens, addresses }): Promise<Response> {
      if (readQueryFlag(context, 'dry_run')) {
        return context.json(viewCheck(await workspaces.check(toNewWorkspace(body))))
      }
      const { warnings, ...workspace } = await workspaces.create(toNewWorkspace(body))
      const base = addresses.baseUrl(context.env.incoming)
      const access = isExternal(workspace) ? await createBridgeAccess(workspace, tokens, base) : {}
      const answer = { ...viewWorkspace(workspace), ...access, ...(warnings.length > 0 && { warnings }) }
      return context.json(answer, 201, { Location: `/workspaces/${workspace.id}` })
    },
  }),
  route({
    method: 'get',
    path: '/workspaces',
    access: 'workspace.read',
    summary: 'The workspaces that the token reaches; "limit" (100, at most 1,000) and "after" read a page',
    success: [200, 'The workspaces, and "next" where there are more'],
    answer: z.strictObject({ workspaces: z.array(workspaceViewSchema), next: z.string().optional() }),
    async handle({ context, identity }, { workspaces }) {
      const limit = readQueryNumber(context, 'limit', { min: 1, max: WORKSPACES_LISTED_MAX }) ?? WORKSPACES_LISTED
      const after = context.req.query('after')
      const { workspaces: page, next } = await listReachable(
        identity,
        { limit, ...(after !== undefined && { after }) },
        workspaces,
      )
      return context.json({
        workspaces: page.map((workspace) => viewWorkspaceFor(identity, workspace)),
        ...(next !== undefined && { next }),
      })
    },
  }),
  route({
    method: 'get',
    path: '/workspaces/:id',
    access: 'workspace.read',
    reach: 'reachable',
    summary: 'One workspace',
    success: [200, 'The workspace'],
    answer: workspaceViewSchema,
    async handle({ context, identity }, { workspaces }) {
      const workspace = await requireWorkspace(workspaces, context.req.param('id'))
      return context.json(viewWorkspaceFor(identity, workspace))
    },
  }),
  route({
    method: 'patch',
    path: '/workspaces/:id',
    access: 'workspace.change',
    body: { schema: workspaceChangeSchema, name: 'a workspace' },
    summary: 'Change a workspace; a field that is absent stays as it is; dry_run=true only checks the body',
    success: [200, 'The workspace'],
    async handle({ context, body }, { lifecycle, workspaces }): Promise<Response> {
      const { id, runtimeConfig } = await requireWorkspace(workspaces, context.req.param('id'))
      const change = toWorkspaceChange(body, runtimeConfig)
      if (readQueryFlag(context, 'dry_run')) return context.json(viewCheck(await lifecycle.checkChange(id, change)))
      return context.json(viewWorkspace(await lifecycle.change(id, change)))
    },
  }),
  route({
    method: 'post',
    path: '/workspaces/:id/connect-command',
    access: 'token.handle',
    summary:
      'A new token for the bridge of an external workspace, and the command that uses it; earlier tokens stay valid',
    success: [201, 'The command with its token, and the earlier tokens of its bridges'],
    answer: connectCommandSchema,
    async handle({ context }, { workspaces, tokens, addresses }) {
      const workspace = await requireWorkspace(workspaces, context.req.param('id'))
      if (!isExternal(workspace)) throw notExternal(workspace)
      const earlier = (await tokens.list()).filter((token) => isBridgeToken(token, workspace.id))
      const access = await createBridgeAccess(workspace, tokens, addresses.baseUrl(context.env.incoming))
      return context.json({ ...access, earlier_tokens: earlier.map(viewToken) }, 201)
    },
  }),
  route({
    method: 'delete',
    path: '/workspaces/:id',
    access: 'workspace.delete',
    summary: 'Delete a workspace; needs confirm=<its name or id> in the query, and cascade=true for those below it',
    success: [200, 'The ids of the deleted workspaces'],
    async handle({ context }, { workspaces, lifecycle }) {
      const cascade = readQueryFlag(context, 'cascade')
      const workspace = await requireWorkspace(workspaces, context.req.param('id'))
      requireConfirmation(context.req.query('confirm'), workspace)
      return context.json({ deleted: await lifecycle.remove(workspace.id, { cascade }) })
    },
  }),
  route({
    method: 'post',
    path: '/workspaces/:id/restart',
    access: 'workspace.restart',
    summary: 'Begin the next turn with a new backend, and check whether the backend can run',
    success: [200, 'The workspace'],
    answer: workspaceViewSchema,
    async handle({ context }, { lifecycle }) {
      return context.json(viewWorkspace(await lifecycle.restart(context.req.param('id'))))
    },
  }),
  route({
    method: 'post',
    path: '/workspaces/:id/pause',
    access: 'workspace.pause',
    summary: 'Keep the queue and begin no turn; now=true also stops running turns, which run again later',
    success: [200, 'The workspace'],
    answer: workspaceViewSchema,
    async handle({ context }, { lifecycle }) {
      const now = readQueryFlag(context, 'now')
      return context.json(viewWorkspace(await lifecycle.pause(context.req.param('id'), { now })))
    },
  }),
  route({
    method: 'post',
    path: '/workspaces/:id/stop',
    access: 'workspace.pause',
    summary: 'Cancel the tasks of the running turns, and pause; the messages that wait are kept',
    success: [200, 'The workspace, and the ids of the cancelled tasks as "canceled"'],
    answer: workspaceViewSchema.extend({ canceled: z.array(z.string()) }),
    async handle({ context }, { lifecycle }) {
      const { workspace, canceled } = await lifecycle.stop(context.req.param('id'))
      return context.json({ ...viewWorkspace(workspace), canceled: [...canceled] })
    },
  }),
  route({
    method: 'post',
    path: '/stop',
    access: 'workspace.pause',
    summary: 'Stop every workspace: cancel the tasks of all running turns, and pause; the messages that wait are kept',
    success: [200, 'The stopped workspaces with the ids of their cancelled tasks, and those that failed'],
    answer: stoppedSchema,
    handle: async ({ context }, { workspaces, lifecycle }) => context.json(await stopAll(workspaces, lifecycle)),
  }),
  route({
    method: 'post',
    path: '/workspaces/:id/resume',
    access: 'workspace.pause',
    summary: 'End a pause',
    success: [200, 'The workspace'],
    answer: workspaceViewSchema,
    async handle({ context }, { lifecycle }) {
      return context.json(viewWorkspace(await lifecycle.resume(context.req.param('id'))))
    },
  }),
]

/** Those with running turns first. A workspace that fails does not keep the others from being stopped. */
async function stopAll(workspaces: Workspaces, lifecycle: WorkspaceLifecycle): Promise<z.input<typeof stoppedSchema>> {
  const all = (await workspaces.all()).toSorted((a, b) => b.running - a.running)
  const answer: z.input<typeof stoppedSchema> = { stopped: [], failed: [] }
  for (const { id, name } of all) {
    try {
      const { workspace, canceled } = await lifecycle.stop(id)
      answer.stopped.push({ id, name, canceled: [...canceled], queue_depth: workspace.queueDepth })
    } catch (thrown) {
      // A workspace that was deleted meanwhile runs nothing.
      const { code, message } = toMoleculeError(thrown)
      if (code !== 'not_found') answer.failed.push({ id, name, message })
    }
  }
  return answer
}

/** The answer of a dry run: whether the workspace could run, and what its owner should know about the settings. */
const viewCheck = ({ warnings = [], ...check }: BackendCheck): WorkspaceView => ({
  ...check,
  warnings: [...warnings],
})

/** A token with which a bridge or a program acts as the workspace; not those of the processes of its turns. */
const isBridgeToken = ({ role, workspaceId }: TokenInfo, id: string): boolean =>
  role === 'workspace' && workspaceId === id

function notExternal({ name, runtime }: Workspace): MoleculeError {
  const reason = `the platform itself runs ${JSON.stringify(name)} (runtime ${runtime})`
  return new MoleculeError('unsupported_operation', `${reason}: only an external workspace has a connect command`)
}

/** What the bridge of an external workspace needs: its token, only in this answer, and the command to paste. */
async function createBridgeAccess({ id, name }: Workspace, tokens: Tokens, base: string) {
  const { secret } = await tokens.create({ name: `bridge of ${name}`, role: 'workspace', workspaceId: id })
  return { auth_token: secret, connect: `molecule connect ${id} --token ${secret} --api-url ${base}` }
}

function requireConfirmation(confirm: string | undefined, { id, name }: { id: string; name: string }): void {
  if (confirm === id || confirm === name) return
  const problem = confirm === undefined ? 'deleting needs' : `${JSON.stringify(confirm)} is not its name:`
  throw new MoleculeError('invalid_request', `${problem} confirm=<the name or id of the workspace> in the query`, {
    details: { path: 'confirm' },
  })
}
