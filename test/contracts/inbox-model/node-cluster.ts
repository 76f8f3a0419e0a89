/**
 * The real side of the model test: two nodes on one store, each with an inbox, a clock that the test moves, and one
 * worker that takes every directive. A node can crash, come back, and have its worker leave and join. Nothing happens
 * by itself: after a step, `quiet` resolves when everything that the step caused is done.
 */
import type { LocalInbox } from '../../../src/inbox/local/local-inbox.ts'
import type { Directive } from '../../../src/inbox/worker.ts'
import { type Store, sql, type Value } from '../../../src/store/store.ts'
import { type ManualClock, manualClock } from '../../fakes/manual-clock.ts'
import { openLocalInbox } from '../../harness/stores/local-inbox.ts'

/** The engine under test: one store for each node, on the same data. An embedded store is shared by both nodes. */
export interface ModelEngine {
  readonly name: string
  open(): Promise<{ readonly stores: readonly Store[]; dispose(): Promise<void> }>
}

export interface TestNode {
  readonly name: string
  readonly alive: boolean
  /** The worker that waits here; undefined when it has left or the node is dead. */
  readonly worker: string | undefined
  readonly local: LocalInbox
}

/** A directive that a worker received. */
export interface ReceivedDirective {
  readonly node: TestNode
  readonly worker: string
  readonly directive: Directive
}

export interface NodeCluster {
  readonly nodes: readonly TestNode[]
  /** The directives that workers received since the last call, in order. */
  receive(): ReceivedDirective[]
  /** Starts the node again: the leases of its earlier process are void. Its worker joins later. */
  boot(node: TestNode): Promise<void>
  /** The process dies: it settles nothing and releases nothing. */
  crash(node: TestNode): void
  join(node: TestNode): void
  leave(node: TestNode): Promise<void>
  /** Five seconds pass on the node, so its sweep runs. */
  sweep(node: TestNode): Promise<void>
  /** Runs SQL without the inbox, to make time pass in the store. */
  sql(text: string, ...values: Value[]): Promise<void>
  /** Resolves when nothing is in progress and nothing is due. */
  quiet(): Promise<void>
  close(): Promise<void>
}

const SWEEP_MS = 5000
/** One lease time: after it a node may take over leases. */
const STEADY_MS = 30_000

interface MutableTestNode extends TestNode {
  alive: boolean
  worker: string | undefined
  local: LocalInbox
  clock: ManualClock
  readonly store: Store
  leaving: { stop: AbortController; left: Promise<void> } | undefined
}

let workers = 0

export async function openNodeCluster(stores: readonly Store[], workspaceIds: readonly string[]): Promise<NodeCluster> {
  const traffic = countTraffic()
  let received: ReceivedDirective[] = []
  const nodes = stores.map((store, index) => newNode(`node${index}`, traffic.watch(store)))
  const quiet = async () => {
    await traffic.idle()
    for (const node of nodes) if (node.alive) node.clock.advance(0)
    await traffic.idle()
  }
  const cluster: NodeCluster = {
    nodes,
    receive() {
      const all = received
      received = []
      return all
    },
    async boot(node) {
      const live = node as MutableTestNode
      live.clock = manualClock()
      live.local = newInbox(live)
      live.alive = true
      await live.local.recover()
      live.clock.advance(STEADY_MS)
      await quiet()
    },
    crash(node) {
      const live = node as MutableTestNode
      live.local.close()
      live.alive = false
      live.worker = undefined
      live.leaving = undefined
    },
    join(node) {
      const live = node as MutableTestNode
      const worker = `${live.name}.${++workers}`
      const stop = new AbortController()
      const takeAll = async () => {
        for await (const directive of live.local.inbox.leases({ id: worker, workspaces: workspaceIds }, stop.signal)) {
          received.push({ node, worker, directive })
        }
      }
      live.worker = worker
      live.leaving = { stop, left: takeAll() }
    },
    async leave(node) {
      const live = node as MutableTestNode
      live.leaving?.stop.abort()
      await live.leaving?.left
      live.leaving = undefined
      live.worker = undefined
    },
    async sweep(node) {
      ;(node as MutableTestNode).clock.advance(SWEEP_MS)
      await quiet()
    },
    async sql(text, ...values) {
      await stores[0]?.write(() => sql(text, values))
    },
    quiet,
    async close() {
      for (const node of nodes) {
        await cluster.leave(node)
        node.local.close()
      }
      await traffic.idle()
    },
  }
  for (const node of nodes) await cluster.boot(node)
  return cluster
}

function newNode(name: string, store: Store): MutableTestNode {
  // The first boot sets inbox and clock.
  return { name, store, alive: false, worker: undefined, leaving: undefined } as unknown as MutableTestNode
}

function newInbox({ name, store, clock }: MutableTestNode): LocalInbox {
  return openLocalInbox(store, clock, name)
}

/** An inbox acts only through its store: without a pending call to the store, nothing is in progress. */
function countTraffic() {
  let pending = 0
  const counted = async <T>(work: () => Promise<T>): Promise<T> => {
    pending += 1
    try {
      return await work()
    } finally {
      pending -= 1
    }
  }
  return {
    watch: (store: Store): Store => ({
      ...store,
      write: (transaction, key) => counted(() => store.write(transaction, key)),
      read: (transaction) => counted(() => store.read(transaction)),
    }),
    /** Resolves when no call is pending in two turns of the event loop in a row. */
    async idle() {
      for (let turns = 0; turns < 2; turns++) {
        await new Promise((resolve) => setImmediate(resolve))
        if (pending > 0) turns = -1
      }
    },
  }
}
