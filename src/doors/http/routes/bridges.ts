/**
 * The worker side of the inbox over HTTP, for bridges. `lease` waits for work; extend, append and settle act under the
 * epoch of the lease. A lease comes with its brief, which holds no secret of the platform. A workspace's token works
 * for that workspace only. The rate limit does not count these calls: there are as many as turns.
 */
import {
  appendEvents,
  askSender,
  beginTurn,
  extendLeases,
  resumeTurn,
  settleLease,
  suspendTurn,
  takeLeases,
} from '../../../api/bridges.ts'
import { MoleculeError, toMoleculeError } from '../../../errors.ts'
import type { Directive } from '../../../inbox/worker.ts'
import { countTurn } from '../../../metrics.ts'
import type { Brief } from '../../../protocol/brief.ts'
import { writeEnvelope } from '../../../protocol/envelope.ts'
import { type BriefedBridge, isExternal, type Workspaces } from '../../../workspaces/workspace.ts'
import { requireWorkspace } from '../server/reach.ts'
import { toAsk, toEvents, toLeaseKey, toOutcome } from './read-bridge-body.ts'
import { type AppContext, serve } from './route.ts'

export const bridgeRoutes = [
  serve(takeLeases, async ({ params, context, identity, body }, app) => {
    const workspaceId = params.id
    await requireExternal(app.workspaces, workspaceId)
    const { bridge, holding, leases_max: leasesMax, wait_ms: waitMs } = body
    const directives = await app.waitingCalls.run({ response: context.env.outgoing, identity }, (signal) =>
      app.bridgeContext.bridges.lease({ workspaceId, bridge, holding, leasesMax, waitMs }, signal),
    )
    const handouts = await Promise.all(directives.map((directive) => directiveForBridge(directive, body, app)))
    return { handouts: handouts.filter((handout) => handout !== undefined) }
  }),
  serve(beginTurn, async ({ params, body: { key, text } }, { bridgeContext: { bridges } }) => ({
    standing: await bridges.begin(toLeaseKey(params.id, key), text),
  })),
  serve(extendLeases, async ({ params, body: { keys } }, { bridgeContext: { bridges } }) => {
    const standings = await bridges.extend(keys.map((key) => toLeaseKey(params.id, key)))
    return {
      standings: standings.map((standing) => (standing === 'waiting' ? 'held' : standing)),
      waiting: standings.map((standing) => standing === 'waiting'),
    }
  }),
  serve(appendEvents, async ({ params, body: { key, ...events } }, { bridgeContext: { bridges } }) => ({
    standing: await bridges.append(toLeaseKey(params.id, key), toEvents(events)),
  })),
  serve(settleLease, async ({ params, body }, { bridgeContext: { bridges }, metrics }) => {
    const { key, host, unsent } = body
    const outcome = toOutcome(body.outcome)
    const settling = { host, outcome, ...(unsent && { unsent: toEvents(unsent) }) }
    const answer = await bridges.settle(toLeaseKey(params.id, key), settling)
    if (answer === 'settled') countTurn(metrics, outcome)
    return { answer }
  }),
  serve(suspendTurn, async ({ params, body: { key } }, { bridgeContext: { bridges } }) => ({
    standing: await bridges.suspend(toLeaseKey(params.id, key)),
  })),
  serve(resumeTurn, async ({ params, body: { key } }, { bridgeContext: { bridges } }) => ({
    standing: await bridges.resume(toLeaseKey(params.id, key)),
  })),
  serve(askSender, async ({ params, body: { key, question } }, { bridgeContext: { bridges } }) => ({
    standing: await bridges.ask(toLeaseKey(params.id, key), toAsk(question)),
  })),
]

async function requireExternal(workspaces: Workspaces, id: string): Promise<void> {
  const workspace = await requireWorkspace(workspaces, id)
  if (isExternal(workspace)) return
  const message = `the platform itself runs ${id} (runtime ${workspace.runtime}); a bridge needs a workspace with the runtime external`
  throw new MoleculeError('unsupported_operation', message)
}

/** A directive as the bridge receives it; undefined for a lease whose brief failed, which is settled here. */
async function directiveForBridge(directive: Directive, bridge: BriefedBridge, { bridgeContext, log }: AppContext) {
  if (directive.type !== 'lease') return directive
  const { lease } = directive
  try {
    const { envelope, ...rest } = lease
    const brief = briefForBridge(await bridgeContext.brief(lease, bridge))
    return { type: 'lease' as const, lease: { ...rest, envelope: writeEnvelope(envelope) }, brief }
  } catch (thrown) {
    const error = toMoleculeError(thrown)
    const { code, message } = error
    const outcome = error.retryable
      ? ({ type: 'released', interrupted: false } as const)
      : ({ type: 'dead', failure: { code, message } } as const)
    log.warn(
      { err: error, messageId: lease.messageId, outcome: outcome.type },
      'the brief of a lease could not be made',
    )
    await bridgeContext.bridges.settle(lease, { outcome, host: bridge.host })
    return undefined
  }
}

/** Without backend, options and folder: the bridge has its own, and options may hold secrets of the platform. */
function briefForBridge({ runtime: _runtime, options: _options, workingDir: _folder, env, ...rest }: Brief) {
  const token = env['MOLECULE_WORKSPACE_TOKEN']
  const ownEnv: Record<string, string> = token === undefined ? {} : { MOLECULE_WORKSPACE_TOKEN: token }
  return { ...rest, env: ownEnv }
}
