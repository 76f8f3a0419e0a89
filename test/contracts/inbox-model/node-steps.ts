/** What happens to nodes and to time: leases run out, retries come due, a process dies and comes back. */
import fc from 'fast-check'
import { always, at, command, living, number } from './command.ts'
import { checkTold, conclude, type Game } from './game.ts'
import * as model from './model.ts'
import type { Node } from './world.ts'

/** The worker of a lease has been silent for a whole lease time; perhaps the other node sees it at once. */
export const lapse = command({
  name: 'lapse',
  choice: fc.record({ lease: number, seen: fc.boolean() }),
  possible: (known) => model.current(known).length > 0,
  async run(game, { lease, seen }) {
    const held = at(model.current(game.model), lease)
    held.message.task.conversation.lapsed = true
    const { conversationId } = held.lease
    await game.world.sql('update conversations set lease_until = now_ms() - 1 where id = $1', conversationId)
    const other = living(game).find(({ name }) => !held.worker.startsWith(`${name}.`))
    if (seen && other !== undefined) await sweepNode(game, other)
    return `${held.lease.idempotencyKey} of ${held.worker}${seen ? `, seen by ${other?.name ?? 'nobody'}` : ''}`
  },
})

/** Every retry is due now, and perhaps every question has waited long enough. */
export const wait = command({
  name: 'wait',
  choice: fc.record({ alsoQuestions: fc.boolean() }),
  possible: always,
  async run(game, { alsoQuestions }) {
    await waitForRetries(game)
    if (!alsoQuestions) return 'for retries'
    for (const { questions } of game.model.messages.values()) for (const question of questions) question.expired = true
    await game.world.sql('update asks set expires_at = now_ms() - 1')
    return 'for retries and answers'
  },
})

export async function waitForRetries({ model: known, world }: Game): Promise<void> {
  for (const message of known.messages.values()) message.delayed = false
  for (const table of ['messages', 'conversations']) {
    await world.sql(`update ${table} set ready_at = now_ms() where ready_at > now_ms()`)
  }
}

export const sweep = command({
  name: 'sweep',
  choice: fc.record({ node: number }),
  possible: always,
  async run(game, choice) {
    const node = at(living(game), choice.node)
    await sweepNode(game, node)
    return node.name
  },
})

export async function sweepNode(game: Game, node: Node): Promise<void> {
  model.sweep(game.model, node.worker)
  await game.world.sweep(node)
  await conclude(game)
  checkTold(game.model, node.worker)
}

export const crash = command({
  name: 'crash',
  choice: fc.record({ node: number }),
  // One at a time: with both gone nothing could happen but a restart.
  possible: ({ dead }) => dead.size === 0,
  async run(game, choice) {
    const node = at(living(game), choice.node)
    game.model.dead.add(node.name)
    game.world.crash(node)
    for (const follower of game.followers) if (follower.node === node) follower.stop.abort()
    return node.name
  },
})

export const restart = command({
  name: 'restart',
  choice: fc.constant({}),
  possible: ({ dead }) => dead.size > 0,
  async run(game) {
    const [name = ''] = game.model.dead
    await restartDead(game)
    return name
  },
})

export async function restartDead(game: Game): Promise<void> {
  const { world } = game
  for (const node of world.nodes) {
    if (node.alive) continue
    game.model.dead.delete(node.name)
    model.recover(game.model, node.name)
    // It looks after everything before its worker is there.
    model.sweep(game.model, undefined)
    await world.boot(node)
    await conclude(game)
    world.join(node)
  }
}

/** The worker takes no more work and keeps what it holds, or one of another name comes. */
export const leaveOrJoin = command({
  name: 'leave or join',
  choice: fc.record({ node: number }),
  possible: always,
  async run({ world, ...game }, choice) {
    const node = at(living({ world, ...game }), choice.node)
    if (node.worker === undefined) world.join(node)
    else await world.leave(node)
    return `${node.name}: ${node.worker ?? 'nobody'}`
  },
})
