/**
 * The worker side of the inbox over HTTP, for bridges. `lease` waits for work; extend, append and settle act under the
 * epoch of the lease. A lease comes with its brief, which holds no secret of the platform. A workspace's token works
 * for that workspace only. The rate limit does not count these calls: there are as many as turns.
 */
import type { z } from 'zod'
import type { EndpointBody } from '../../../api/endpoint.ts'
import { MoleculeError, toMoleculeError } from '../../../errors.ts'
import type { Bridges, Directive } from '../../../inbox/inbox.ts'
import { countTurn, type Metrics } from '../../../metrics.ts'
import type { Brief } from '../../../protocol/brief.ts'
import { writeEnvelope } from '../../../protocol/envelope.ts'
import { type BriefedBridge, isExternal, type Workspaces } from '../../../workspaces/workspace.ts'
import { INBOX_BODY_BYTES_MAX, INBOX_JSON_VALUES_MAX } from '../server/body.ts'
import { requireWorkspace } from '../server/reach.ts'
import * as schema from './inbox-schema.ts'
import { type AppContext, route } from './route.ts'

export const inboxRoutes = [
  route({
    method: 'post',
    path: '/workspaces/:id/inbox/lease',
    access: 'inbox.work',
    reach: 'own',
    counted: false,
    body: inboxBody(schema.leaseSchema, 'a lease call'),
    summary: 'Wait for messages to run, each with its brief; the call names the leases that the bridge holds',
    success: [200, 'The directives'],
    async handle({ context, identity, body }, app) {
      const workspaceId = context.req.param('id')
      await requireExternal(app.workspaces, workspaceId)
      const { bridge, holding, leases_max: leasesMax, wait_ms: waitMs } = body
      const directives = await app.waitingCalls.run({ response: context.env.outgoing, identity }, (signal) =>
        app.bridgeContext.bridges.lease({ workspaceId, bridge, holding, leasesMax, waitMs }, signal),
      )
      const handouts = await Promise.all(directives.map((directive) => directiveForBridge(directive, body, app)))
      return context.json({ handouts: handouts.filter((handout) => handout !== undefined) })
    },
  }),
  workRoute('begin', {
    body: inboxBody(schema.beginSchema, 'the begin of a turn'),
    summary: 'The turn of a lease begins',
    async answer({ workspaceId, body: { key, text }, bridges }) {
      return { standing: await bridges.begin(schema.toLeaseKey(workspaceId, key), text) }
    },
  }),
  workRoute('extend', {
    body: inboxBody(schema.extendSchema, 'a renewal'),
    summary: 'Renew leases',
    async answer({ workspaceId, body: { keys }, bridges }) {
      const standings = await bridges.extend(keys.map((key) => schema.toLeaseKey(workspaceId, key)))
      // In two lists: a bridge of an earlier version ends a turn whose standing it does not know.
      return {
        standings: standings.map((standing) => (standing === 'waiting' ? 'held' : standing)),
        waiting: standings.map((standing) => standing === 'waiting'),
      }
    },
  }),
  workRoute('append', {
    body: inboxBody(schema.appendSchema, 'events of a turn'),
    summary: 'Append events of a running turn',
    async answer({ workspaceId, body: { key, ...events }, bridges }) {
      return { standing: await bridges.append(schema.toLeaseKey(workspaceId, key), schema.toEvents(events)) }
    },
  }),
  workRoute('settle', {
    body: inboxBody(schema.settleSchema, 'an outcome'),
    summary: 'Close a lease with its outcome',
    async answer({ workspaceId, body: { key, host, outcome, unsent }, bridges, metrics }) {
      const settling = { host, outcome: schema.toOutcome(outcome), ...(unsent && { unsent: schema.toEvents(unsent) }) }
      const answer = await bridges.settle(schema.toLeaseKey(workspaceId, key), settling)
      if (answer === 'settled') countTurn(metrics, settling.outcome)
      return { answer }
    },
  }),
  workRoute('suspend', {
    body: inboxBody(schema.suspendSchema, 'a wait'),
    summary: 'A turn waits and gives up its slot',
    async answer({ workspaceId, body: { key }, bridges }) {
      return { standing: await bridges.suspend(schema.toLeaseKey(workspaceId, key)) }
    },
  }),
  workRoute('resume', {
    body: inboxBody(schema.suspendSchema, 'a wait'),
    summary: 'The wait of a turn is over',
    async answer({ workspaceId, body: { key }, bridges }) {
      return { standing: await bridges.resume(schema.toLeaseKey(workspaceId, key)) }
    },
  }),
  workRoute('ask', {
    body: inboxBody(schema.askSchema, 'a question'),
    summary: 'Ask the sender of the task a question of its turn',
    async answer({ workspaceId, body: { key, question }, bridges }) {
      return { standing: await bridges.ask(schema.toLeaseKey(workspaceId, key), schema.toAsk(question)) }
    },
  }),
]

function inboxBody<Schema extends z.ZodObject>(bodySchema: Schema, name: string): EndpointBody<Schema> {
  return { schema: bodySchema, name, bytesMax: INBOX_BODY_BYTES_MAX, valuesMax: INBOX_JSON_VALUES_MAX }
}

/** A call of a worker about leases that it holds. */
function workRoute<Schema extends z.ZodObject>(
  name: string,
  {
    body: routeBody,
    summary,
    answer,
  }: {
    readonly body: EndpointBody<Schema>
    readonly summary: string
    readonly answer: (call: {
      readonly workspaceId: string
      readonly body: z.output<Schema>
      readonly bridges: Bridges
      readonly metrics: Metrics
    }) => Promise<object>
  },
) {
  return route({
    method: 'post',
    path: `/workspaces/:id/inbox/${name}`,
    access: 'inbox.work',
    reach: 'own',
    counted: false,
    body: routeBody,
    summary,
    success: [200, 'The standing of each lease'],
    async handle({ context, body }, { bridgeContext: { bridges }, metrics }) {
      const workspaceId = context.req.param('id')
      return context.json(await answer({ workspaceId, body: body as z.output<Schema>, bridges, metrics }))
    },
  })
}

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
    return { type: 'lease', lease: { ...rest, envelope: writeEnvelope(envelope) }, brief }
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
  return { ...rest, env: token === undefined ? {} : { MOLECULE_WORKSPACE_TOKEN: token } }
}
