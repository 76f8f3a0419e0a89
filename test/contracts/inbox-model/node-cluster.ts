/**
 * The real side of the model test: two nodes on one store, each with an inbox, a clock that is moved by hand and one
 * worker that picks up whatever it is handed. A node can crash (it is dropped as it stands), come back, and have its
 * worker leave and join. Nothing happens by itself: after a step, `quiet` resolves when all that follows from it has
 * been done.
 */
import type { Directive } from '../../../src/inbox/inbox.ts'
import { createLocalInbox, type LocalInbox } from '../../../src/inbox/local-inbox.ts'
import { silentLog } from '../../../src/log.ts'
import { keepSession } from '../../../src/sessions/sessions.ts'
import { type Store, sql, type Value } from '../../../src/store/store.ts'
import { type ManualClock, manualClock } from '../../fakes/manual-clock.ts'

/** Where the test runs: as many stores as there are nodes, on the same data; an embedded one is shared by both. */
export interface ModelEngine {
  readonly name: string
  open(): Promise<{ readonly stores: readonly Store[]; dispose(): Promise<void> }>
}

export interface TestNode {
  readonly name: string
  readonly alive: boolean
  /** The worker that stands ready here; undefined when it has left or the node is dead. */
  readonly worker: string | undefined
  readonly local: LocalInbox
}

/** Something that a worker was given, in the order of coming. */
export interface ReceivedDirective {
  readonly node: TestNode
  readonly worker: string
  readonly directive: Directive
}

export interface NodeCluster {
  readonly nodes: readonly TestNode[]
  /** Takes what the workers were handed since the last time. */
  receive(): ReceivedDirective[]
  /** Starts the node anew: what its earlier process held is void. Its worker joins later. */
  boot(node: TestNode): Promise<void>
  /** The process is gone as it stands: nothing is settled, nothing given back. */
  crash(node: TestNode): void
  join(node: TestNode): void
  leave(node: TestNode): Promise<void>
  /** Five seconds pass on the node: what is to be done though nobody asks is done. */
  sweep(node: TestNode): Promise<void>
  /** Runs a statement behind the inbox's back, to make time pass in the store. */
  sql(text: string, ...values: Value[]): Promise<void>
  /** Resolves when nothing is under way and nothing is due. */
  quiet(): Promise<void>
  close(): Promise<void>
}

const SWEEP_MS = 5000
/** One lease time of life: from then on a node takes over from others. */
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
  // Its inbox and its clock come with its first boot.
  return { name, store, alive: false, worker: undefined, leaving: undefined } as unknown as MutableTestNode
}

function newInbox({ name, store, clock }: MutableTestNode): LocalInbox {
  return createLocalInbox({
    store,
    clock,
    host: name,
    log: silentLog,
    keepSession: (key, token) => keepSession(name, key, token),
  })
}

/** All that an inbox does goes through its store: when nothing is on its way there, nothing is under way. */
function countTraffic() {
  let underWay = 0
  const counted = async <T>(work: () => Promise<T>): Promise<T> => {
    underWay += 1
    try {
      return await work()
    } finally {
      underWay -= 1
    }
  }
  return {
    watch: (store: Store): Store => ({
      ...store,
      write: (transaction, key) => counted(() => store.write(transaction, key)),
      read: (transaction) => counted(() => store.read(transaction)),
    }),
    /** Twice in a row, with everything that was decided meanwhile having run its course. */
    async idle() {
      for (let turns = 0; turns < 2; turns++) {
        await new Promise((resolve) => setImmediate(resolve))
        if (underWay > 0) turns = -1
      }
    },
  }
}
