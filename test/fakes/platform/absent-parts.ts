/** Parts of a fake platform that has no chat channels, no schedules, and no dead letters. */
import type { ChatRoutesContext } from '../../../src/doors/http/routes/route.ts'
import { MoleculeError } from '../../../src/errors.ts'
import type { DeadLetters } from '../../../src/inbox/owners.ts'
import type { ReadStore } from '../../../src/store/store.ts'
import type { Schedules } from '../../../src/workspaces/schedules.ts'

const rejectNotFound = async (id: string): Promise<never> => {
  throw new MoleculeError('not_found', `there is no ${id}`)
}

/** A store without rows, for views. */
export const emptyStore: ReadStore = {
  async read(transaction) {
    const steps = transaction()
    for (let step = steps.next(); ; ) {
      if (step.done) return step.value
      step = steps.next(step.value.map(() => []))
    }
  },
}

export const noChannels: ChatRoutesContext = {
  channels: {
    add: async () => undefined,
    list: async () => [],
    get: rejectNotFound,
    remove: rejectNotFound,
    bind: ({ channel }) => rejectNotFound(channel),
    unbind: rejectNotFound,
    bindings: async () => [],
    move: async () => undefined,
    boundTo: async () => undefined,
    answering: async () => undefined,
    claim: async () => false,
    release: async () => undefined,
    setProblem: async () => undefined,
  },
  pairings: {
    find: async () => undefined,
    request: async () => undefined,
    hold: async () => 'full',
    released: async () => [],
    dropHeld: async () => undefined,
    waiting: async () => [],
    owners: async () => [],
    hasOwner: async () => false,
    decide: rejectNotFound,
  },
  check: ({ kind }) => rejectNotFound(kind),
  wake: () => undefined,
  requireKind: rejectNotFound,
  findWebhook: () => undefined,
  endDeliveries: async () => undefined,
}

export const noDeadLetters: DeadLetters = {
  replay: (_workspaceId, id) => rejectNotFound(id),
  discard: (_workspaceId, id) => rejectNotFound(id),
}

export const noSchedules: Schedules = {
  create: ({ workspaceId }) => rejectNotFound(workspaceId),
  get: rejectNotFound,
  change: rejectNotFound,
  remove: async () => false,
  due: async () => ({ due: [], nextAtMs: undefined }),
  leaveOut: async () => undefined,
  prepareRun: ({ id }) => rejectNotFound(id),
}
