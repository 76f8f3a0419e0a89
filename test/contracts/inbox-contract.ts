/** The inbox's contract, run on every engine: what happens to a message in each case. */
import { after, before, describe } from 'node:test'
import { activity } from './inbox/activity.ts'
import { admission } from './inbox/admit.ts'
import { bridges } from './inbox/bridges.ts'
import { cancelling } from './inbox/cancel.ts'
import { deadLetters } from './inbox/dead-letters.ts'
import { deliveries } from './inbox/deliveries.ts'
import { createInboxBench } from './inbox/harness.ts'
import { notes } from './inbox/notes.ts'
import { pendingPermissions } from './inbox/pending.ts'
import { pushes } from './inbox/push.ts'
import { queues } from './inbox/queues.ts'
import { reading } from './inbox/reading.ts'
import { recovery } from './inbox/recover.ts'
import { retention } from './inbox/retention.ts'
import { sending } from './inbox/sending.ts'
import { settling } from './inbox/settle.ts'
import { stories } from './inbox/story.ts'
import { takingOver } from './inbox/takeover.ts'
import { usage } from './inbox/usage.ts'
import { waitingTurns } from './inbox/waiting.ts'
import type { StoreUnderTest } from './store-contract.ts'

export function inboxContract(underTest: StoreUnderTest): void {
  describe(`the inbox on ${underTest.name}`, () => {
    const bench = createInboxBench(underTest)
    before(bench.open)
    after(bench.close)
    admission(bench)
    settling(bench)
    sending(bench)
    cancelling(bench)
    recovery(bench)
    reading(bench)
    takingOver(bench)
    deadLetters(bench)
    waitingTurns(bench)
    pendingPermissions(bench)
    deliveries(bench)
    retention(bench)
    notes(bench)
    pushes(bench)
    queues(bench)
    activity(bench)
    stories(bench)
    usage(bench)
    bridges(bench)
  })
}
