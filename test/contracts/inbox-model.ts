/**
 * The inbox against a model: random steps by two nodes on one store (admit, lease, lose a lease, append, settle,
 * cancel, wait, crash, restart). After each step the rows must match the model. At the end healthy workers take what is
 * left, and every admitted message must have its outcome. `model.ts` knows what must be, `node-cluster.ts` runs it, and
 * `rows.ts` checks the invariants of the rows.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import fc from 'fast-check'
import type { Store } from '../../src/store/store.ts'
import type { ModelCommand } from './inbox-model/command.ts'
import { runConcurrentSteps, stepWaves } from './inbox-model/concurrent-steps.ts'
import * as door from './inbox-model/door-steps.ts'
import { current, type InboxModel, isUnsettled, settle } from './inbox-model/model.ts'
import { closeModelRun, conclude, type ModelRun, openModelRun } from './inbox-model/model-run.ts'
import type { ModelEngine } from './inbox-model/node-cluster.ts'
import * as node from './inbox-model/node-steps.ts'
import * as worker from './inbox-model/worker-steps.ts'

/** A frequent step is listed more than once. */
const STEPS: fc.Arbitrary<ModelCommand>[] = [
  ...[door.admitNew, door.admitNew, door.admitNew, door.admitAgain, door.continueTask, door.continueTask],
  ...[door.cancelTask, door.followTask],
  ...[worker.settle, worker.settle, worker.settle, worker.settle, worker.settleTwice, worker.append, worker.append],
  ...[worker.begin, worker.begin, worker.extend, worker.suspend, worker.resume, worker.ask, worker.ask],
  ...[node.lapse, node.lapse, node.sweep, node.sweep, node.wait, node.crash, node.restart, node.leaveOrJoin],
]

export interface ModelTestOptions {
  readonly runs: number
  readonly steps: number
}

export function inboxModelContract(engine: ModelEngine, options: ModelTestOptions): void {
  describe(`the inbox against a model on ${engine.name}`, () => {
    let stores: readonly Store[]
    let dispose: () => Promise<void>
    before(async () => {
      ;({ stores, dispose } = await engine.open())
    })
    after(() => dispose())

    test('IN-1 IN-2 IN-3 IN-5 IN-10 RE-1 two nodes lose nothing and do nothing twice, whatever they do and wherever they crash', async () => {
      // Without `noBias` fast-check prefers short lists.
      const commands = fc.noBias(fc.commands(STEPS, { maxCommands: options.steps, size: 'max' }))
      const property = fc.asyncProperty(commands, async (chosen) => {
        const modelRun = await openModelRun(stores)
        try {
          await fc.asyncModelRun(() => ({ model: modelRun.model, real: modelRun }), chosen)
          await drain(modelRun)
          await checkReaders(modelRun)
        } finally {
          await closeModelRun(modelRun)
        }
      })
      await fc.assert(property, { numRuns: options.runs })
    })

    test('IN-2 IN-3 IN-5 IN-8 RE-1 two nodes that act at the same moment keep every invariant and finish every message', async () => {
      const property = fc.asyncProperty(stepWaves, (chosen) => runConcurrentSteps(stores, chosen))
      await fc.assert(property, { numRuns: options.runs })
    })
  })
}

/** More rounds than any run needs; the test fails when it is reached. */
const DRAIN_ROUNDS_MAX = 200

/** Both nodes are healthy and settle every lease. */
async function drain(modelRun: ModelRun): Promise<void> {
  const { cluster, model } = modelRun
  await node.restartDead(modelRun)
  for (const one of cluster.nodes) if (one.worker === undefined) cluster.join(one)
  await conclude(modelRun)
  for (let round = 0; hasWork(model); round++) {
    assert.ok(round < DRAIN_ROUNDS_MAX, 'a healthy worker brings every message to its end')
    for (const held of current(model)) {
      const outcome = { type: 'done', finality: 'completed', parts: [{ text: 'at last' }], artifacts: [] } as const
      const own = cluster.nodes.find(({ name }) => held.worker.startsWith(`${name}.`))
      const expected = settle(held, outcome, { from: 1, events: [] })
      assert.equal(await own?.local.inbox.settle(held.lease, outcome), expected)
      await conclude(modelRun)
    }
    await node.waitForRetries(modelRun)
    for (const one of cluster.nodes) await node.sweepNode(modelRun, one)
  }
  const counters = modelRun.rows.loads.map(({ running, suspended, waiting }) => running + suspended + waiting)
  assert.deepEqual(counters, [0, 0])
}

const hasWork = ({ messages }: InboxModel) => messages.values().some(isUnsettled)

/** Readers that followed from the start saw every entry once, in order, and so do readers that start now. */
async function checkReaders(modelRun: ModelRun): Promise<void> {
  const { rows, cluster, model, followers } = modelRun
  const logOf = (taskId: string) => rows.events.filter(({ task_id }) => task_id === taskId).map(({ seq }) => seq)
  // A reader on a node without a wake-up reads again after a while.
  for (const one of cluster.nodes) await cluster.sweep(one)
  await Promise.all(followers.map(({ ended }) => ended))
  for (const { task, seqs } of followers) {
    const last = seqs.at(-1) ?? 0
    assert.deepEqual(
      seqs,
      logOf(task.id).filter((seq) => seq <= last),
    )
  }
  const [reader] = cluster.nodes
  for (const { id } of model.tasks.values()) {
    const seqs: number[] = []
    for await (const { seq } of reader?.local.reception.follow(id, { afterSeq: 0 }, AbortSignal.timeout(10_000)) ?? [])
      seqs.push(seq)
    assert.deepEqual(seqs, logOf(id))
  }
}
