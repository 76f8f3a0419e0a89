/**
 * The worker's face of the inbox over HTTP, for bridges: lease as a call that waits for work, then extend, append and
 * settle under the lease's epoch. A lease comes with its brief, without any secret of the platform. A workspace's token
 * works for that workspace alone. These calls are not counted against the token's limit: their number is that of turns.
 */
import { type Context, Hono } from 'hono'
import { MoleculeError, toMoleculeError } from '../../../errors.ts'
import type { Bridges, Directive, Lease } from '../../../inbox/inbox.ts'
import type { Log } from '../../../log.ts'
import type { Brief } from '../../../protocol/brief.ts'
import { writeEnvelope } from '../../../protocol/envelope.ts'
import { type BriefedBridge, isExternal, type Workspaces } from '../../../workspaces/workspace.ts'
import type { HttpAuth } from '../server/auth.ts'
import { readJson } from '../server/body.ts'
import { allow, type HttpEnv } from '../server/guard.ts'
import { requireOwnWorkspace } from '../server/reach.ts'
import { validateBody } from '../server/validate-body.ts'
import type { WaitingCalls } from '../server/waiting-calls.ts'
import * as form from './inbox-schema.ts'

/** What bridges are served from. */
export interface BridgeContext {
  readonly bridges: Bridges
  /** The brief of a lease for this bridge; throws `bad_config`. */
  readonly brief: (lease: Lease, bridge: BriefedBridge) => Promise<Brief>
}

export interface InboxRouteOptions {
  readonly bridgeContext: BridgeContext
  readonly workspaces: Workspaces
  readonly auth: HttpAuth
  readonly waiting: WaitingCalls
  readonly log: Log
}

export function inboxRoutes(options: InboxRouteOptions): Hono<HttpEnv> {
  const { bridgeContext, workspaces, auth, waiting } = options
  const { bridges } = bridgeContext
  const routes = new Hono<HttpEnv>()
  const at = (name: string) => `/workspaces/:id/inbox/${name}` as const
  const guard = allow(auth, 'inbox.work', { counted: false })
  const open = async (context: Context<HttpEnv>) => {
    const workspaceId = context.req.param('id') ?? ''
    requireOwnWorkspace(context.get('identity'), workspaceId)
    return { workspaceId, body: await readJson(context.env.incoming, form.INBOX_BODY_BYTES_MAX) }
  }
  routes.post(at('lease'), guard, async (context) => {
    const { workspaceId, body } = await open(context)
    const leaseCall = validateBody(form.leaseSchema, body, 'a call for work')
    await requireExternal(workspaces, workspaceId)
    const { bridge, holding, leases_max: leasesMax, wait_ms: waitMs } = leaseCall
    const waitingCall = { response: context.env.outgoing, identity: context.get('identity') }
    const handouts = await waiting.during(waitingCall, (signal) =>
      bridges.lease({ workspaceId, bridge, holding, leasesMax, waitMs }, signal),
    )
    const directives = await Promise.all(handouts.map((directive) => directiveForBridge(directive, leaseCall, options)))
    return context.json({ handouts: directives.filter((one) => one !== undefined) })
  })
  routes.post(at('extend'), guard, async (context) => {
    const { workspaceId, body } = await open(context)
    const { keys } = validateBody(form.extendSchema, body, 'a renewal')
    return context.json({ standings: await bridges.extend(keys.map((key) => form.toLeaseKey(workspaceId, key))) })
  })
  routes.post(at('append'), guard, async (context) => {
    const { workspaceId, body } = await open(context)
    const { key, ...events } = validateBody(form.appendSchema, body, 'what a turn tells')
    return context.json({ standing: await bridges.append(form.toLeaseKey(workspaceId, key), form.toEvents(events)) })
  })
  routes.post(at('settle'), guard, async (context) => {
    const { workspaceId, body } = await open(context)
    const { key, host, outcome, unsent } = validateBody(form.settleSchema, body, 'an outcome')
    const settling = { host, outcome: form.toOutcome(outcome), ...(unsent && { unsent: form.toEvents(unsent) }) }
    return context.json({ answer: await bridges.settle(form.toLeaseKey(workspaceId, key), settling) })
  })
  for (const name of ['suspend', 'resume'] as const) {
    routes.post(at(name), guard, async (context) => {
      const { workspaceId, body } = await open(context)
      const { key } = validateBody(form.suspendSchema, body, 'a wait')
      return context.json({ standing: await bridges[name](form.toLeaseKey(workspaceId, key)) })
    })
  }
  routes.post(at('ask'), guard, async (context) => {
    const { workspaceId, body } = await open(context)
    const { key, question } = validateBody(form.askSchema, body, 'a question')
    return context.json({ standing: await bridges.ask(form.toLeaseKey(workspaceId, key), form.toAsk(question)) })
  })
  return routes
}

async function requireExternal(workspaces: Workspaces, id: string): Promise<void> {
  const workspace = await workspaces.get(id)
  if (workspace === undefined) throw new MoleculeError('not_found', `there is no workspace ${id}`)
  if (isExternal(workspace)) return
  const message = `the platform itself runs ${id} (runtime ${workspace.runtime}); a bridge needs one made with the runtime external`
  throw new MoleculeError('unsupported_operation', message)
}

/** A directive as a bridge gets it; undefined for a lease that cannot be begun and is settled as that. */
async function directiveForBridge(
  directive: Directive,
  bridge: BriefedBridge,
  { bridgeContext, log }: InboxRouteOptions,
) {
  if (directive.type !== 'lease') return directive
  const { lease } = directive
  try {
    const { envelope, ...rest } = lease
    const brief = briefForBridge(await bridgeContext.brief(lease, bridge))
    return { type: 'lease', lease: { ...rest, envelope: writeEnvelope(envelope) }, brief }
  } catch (thrown) {
    const error = toMoleculeError(thrown)
    const { code, message } = error
    const outcome = error.retryable
      ? ({ type: 'released', interrupted: false } as const)
      : ({ type: 'dead', failure: { code, message } } as const)
    log.warn({ err: error, messageId: lease.messageId, outcome: outcome.type }, 'a lease could not be briefed')
    await bridgeContext.bridges.settle(lease, { outcome, host: bridge.host })
    return undefined
  }
}

/** Backend, options and folder are the bridge's own; options may hold secrets of the platform. */
function briefForBridge({ runtime: _runtime, options: _options, workingDir: _folder, env, ...rest }: Brief) {
  const token = env['MOLECULE_WORKSPACE_TOKEN']
  return { ...rest, env: token === undefined ? {} : { MOLECULE_WORKSPACE_TOKEN: token } }
}
