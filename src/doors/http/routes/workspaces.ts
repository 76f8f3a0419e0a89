/**
 * Workspaces over HTTP: create, list, read, change, delete, restart, pause, stop, resume. Deleting needs the workspace's name
 * or id a second time, because it cannot be undone.
 */
import type { z } from 'zod'
import type { Frozen } from '../../../api/endpoint.ts'
import {
  changeWorkspace,
  createConnectCommand,
  createWorkspace,
  deleteWorkspace,
  listWorkspaces,
  pauseWorkspace,
  readWorkspace,
  restartWorkspace,
  resumeWorkspace,
  stopWorkspace,
  stopWorkspaces,
  type workspaceCheckSchema,
} from '../../../api/workspaces.ts'
import { MoleculeError, toMoleculeError } from '../../../errors.ts'
import { readTokensOf } from '../../../views/tokens.ts'
import { wholeWorkspace, workspaceFor } from '../../../views/workspaces.ts'
import type { Tokens } from '../../../workspaces/tokens.ts'
import {
  type BackendCheck,
  isExternal,
  type Workspace,
  type WorkspaceLifecycle,
  type Workspaces,
} from '../../../workspaces/workspace.ts'
import { listReachable, requireWorkspace } from '../server/reach.ts'
import { serve } from './route.ts'
import { toNewWorkspace, toWorkspaceChange } from './workspace-body.ts'

export const workspaceRoutes = [
  serve(createWorkspace, async ({ context, query, body }, { workspaces, tokens, addresses, readCards }) => {
    if (query.dry_run) {
      context.status(200)
      return checkAnswer(await workspaces.check(toNewWorkspace(body)))
    }
    const { warnings, ...workspace } = await workspaces.create(toNewWorkspace(body))
    const base = addresses.baseUrl(context.env.incoming)
    const access = isExternal(workspace) ? await createBridgeAccess(workspace, tokens, base) : {}
    context.header('Location', `/workspaces/${workspace.id}`)
    const card = (await readCards([workspace])).get(workspace.id)
    return { ...wholeWorkspace(workspace, card), ...access, warnings: warnings.length > 0 ? warnings : undefined }
  }),
  serve(listWorkspaces, async ({ identity, query: { limit, after } }, { workspaces, readCards }) => {
    const page = await listReachable(identity, { limit, after }, workspaces)
    const cards = await readCards(page.workspaces)
    const shown = page.workspaces.map((each) => workspaceFor(identity, each, cards.get(each.id)))
    return { workspaces: shown, next: page.next }
  }),
  serve(readWorkspace, async ({ params, identity }, { workspaces, readCards }) => {
    const workspace = await requireWorkspace(workspaces, params.id)
    return workspaceFor(identity, workspace, (await readCards([workspace])).get(workspace.id))
  }),
  serve(changeWorkspace, async ({ params, query, body }, { lifecycle, workspaces }) => {
    const { id, runtimeConfig } = await requireWorkspace(workspaces, params.id)
    const change = toWorkspaceChange(body, runtimeConfig)
    if (query.dry_run) return checkAnswer(await lifecycle.checkChange(id, change))
    return wholeWorkspace(await lifecycle.change(id, change))
  }),
  serve(createConnectCommand, async ({ context, params }, { workspaces, tokens, addresses, store }) => {
    const workspace = await requireWorkspace(workspaces, params.id)
    if (!isExternal(workspace)) throw notExternal(workspace)
    const earlier = await readTokensOf(store, workspace.id)
    const access = await createBridgeAccess(workspace, tokens, addresses.baseUrl(context.env.incoming))
    return { ...access, earlier_tokens: earlier }
  }),
  serve(deleteWorkspace, async ({ params, query: { confirm, cascade } }, { workspaces, lifecycle }) => {
    const workspace = await requireWorkspace(workspaces, params.id)
    requireConfirmation(confirm, workspace)
    return { deleted: await lifecycle.remove(workspace.id, { cascade }) }
  }),
  serve(restartWorkspace, async ({ params }, { lifecycle }) => wholeWorkspace(await lifecycle.restart(params.id))),
  serve(pauseWorkspace, async ({ params, query: { now } }, { lifecycle }) =>
    wholeWorkspace(await lifecycle.pause(params.id, { now })),
  ),
  serve(stopWorkspace, async ({ params }, { lifecycle }) => {
    const { workspace, canceled } = await lifecycle.stop(params.id)
    return { ...wholeWorkspace(workspace), canceled }
  }),
  serve(stopWorkspaces, async (_call, { workspaces, lifecycle }) => await stopAll(workspaces, lifecycle)),
  serve(resumeWorkspace, async ({ params }, { lifecycle }) => wholeWorkspace(await lifecycle.resume(params.id))),
]

type StoppedWorkspaces = z.output<typeof stopWorkspaces.answer>

/** Those with running turns first. A workspace that fails does not keep the others from being stopped. */
async function stopAll(workspaces: Workspaces, lifecycle: WorkspaceLifecycle): Promise<StoppedWorkspaces> {
  const all = (await workspaces.all()).toSorted((a, b) => b.running - a.running)
  const answer: StoppedWorkspaces = { stopped: [], failed: [] }
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
export const checkAnswer = ({
  warnings = [],
  ...check
}: BackendCheck): Frozen<z.output<typeof workspaceCheckSchema>> => ({
  ...check,
  warnings,
})

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
