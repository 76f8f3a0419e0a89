/** Steps of nodes and time: leases run out, retries come due, a process dies and comes back. */
import fc from 'fast-check'
import { aliveNodes, always, command, number, pick } from './command.ts'
import * as model from './model.ts'
import { checkDirectivesReceived, conclude, type ModelRun } from './model-run.ts'
import type { TestNode } from './node-cluster.ts'

/** A lease runs out; perhaps the other node sees it at once. */
export const lapse = command({
  name: 'lapse',
  choice: fc.record({ lease: number, seen: fc.boolean() }),
  possible: (known) => model.current(known).length > 0,
  async run(modelRun, { lease, seen }) {
    const held = pick(model.current(modelRun.model), lease)
    held.message.task.conversation.lapsed = true
    const { conversationId } = held.lease
    await modelRun.cluster.sql('update conversations set lease_until = now_ms() - 1 where id = $1', conversationId)
    const other = aliveNodes(modelRun).find(({ name }) => !held.worker.startsWith(`${name}.`))
    if (seen && other !== undefined) await sweepNode(modelRun, other)
    return `${held.lease.idempotencyKey} of ${held.worker}${seen ? `, seen by ${other?.name ?? 'no node'}` : ''}`
  },
})

/** Every retry is due now, and perhaps every ask times out. */
export const wait = command({
  name: 'wait',
  choice: fc.record({ alsoQuestions: fc.boolean() }),
  possible: always,
  async run(modelRun, { alsoQuestions }) {
    await waitForRetries(modelRun)
    if (!alsoQuestions) return 'for retries'
    for (const { asks } of modelRun.model.messages.values()) for (const question of asks) question.expired = true
    await modelRun.cluster.sql('update asks set expires_at = now_ms() - 1')
    return 'for retries and answers'
  },
})

export async function waitForRetries({ model: known, cluster }: ModelRun): Promise<void> {
  for (const message of known.messages.values()) message.delayed = false
  for (const table of ['messages', 'conversations']) {
    await cluster.sql(`update ${table} set ready_at = now_ms() where ready_at > now_ms()`)
  }
}

export const sweep = command({
  name: 'sweep',
  choice: fc.record({ node: number }),
  possible: always,
  async run(modelRun, choice) {
    const node = pick(aliveNodes(modelRun), choice.node)
    await sweepNode(modelRun, node)
    return node.name
  },
})

export async function sweepNode(modelRun: ModelRun, node: TestNode): Promise<void> {
  model.sweep(modelRun.model, node.worker)
  await modelRun.cluster.sweep(node)
  await conclude(modelRun)
  checkDirectivesReceived(modelRun.model, node.worker)
}

export const crash = command({
  name: 'crash',
  choice: fc.record({ node: number }),
  // One node at a time: with both dead only a restart could follow.
  possible: ({ dead }) => dead.size === 0,
  async run(modelRun, choice) {
    const node = pick(aliveNodes(modelRun), choice.node)
    modelRun.model.dead.add(node.name)
    modelRun.cluster.crash(node)
    for (const follower of modelRun.followers) if (follower.node === node) follower.stop.abort()
    return node.name
  },
})

export const restart = command({
  name: 'restart',
  choice: fc.constant({}),
  possible: ({ dead }) => dead.size > 0,
  async run(modelRun) {
    const [name = ''] = modelRun.model.dead
    await restartDead(modelRun)
    return name
  },
})

export async function restartDead(modelRun: ModelRun): Promise<void> {
  const { cluster } = modelRun
  for (const node of cluster.nodes) {
    if (node.alive) continue
    modelRun.model.dead.delete(node.name)
    model.recover(modelRun.model, node.name)
    // The node sweeps once before its worker joins.
    model.sweep(modelRun.model, undefined)
    await cluster.boot(node)
    await conclude(modelRun)
    cluster.join(node)
  }
}

/** The worker leaves and keeps its leases, or a new worker joins. */
export const leaveOrJoin = command({
  name: 'leave or join',
  choice: fc.record({ node: number }),
  possible: always,
  async run({ cluster, ...modelRun }, choice) {
    const node = pick(aliveNodes({ cluster, ...modelRun }), choice.node)
    if (node.worker === undefined) cluster.join(node)
    else await cluster.leave(node)
    return `${node.name}: ${node.worker ?? 'no node'}`
  },
})
