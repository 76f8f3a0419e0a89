/** The contract of the inbox, run on every engine: what happens to a message in each case. */
import { after, before, describe } from 'node:test'
import { activityTests } from './inbox/activity.ts'
import { admitTests } from './inbox/admit.ts'
import { bridgeLeaseTests } from './inbox/bridge-leases.ts'
import { bridgeTests } from './inbox/bridges.ts'
import { budgetTests } from './inbox/budgets.ts'
import { cancelTests } from './inbox/cancel.ts'
import { chatTurnTests } from './inbox/chat-turns.ts'
import { chatTests } from './inbox/chats.ts'
import { deadLetterTests } from './inbox/dead-letters.ts'
import { delegationResultTests } from './inbox/delegation-results.ts'
import { delegationTests } from './inbox/delegations.ts'
import { deliveryTests } from './inbox/deliveries.ts'
import { createInboxHarness } from './inbox/harness.ts'
import { historyTests } from './inbox/history.ts'
import { needTests } from './inbox/needs.ts'
import { noteTests } from './inbox/notes.ts'
import { pageTests } from './inbox/pages.ts'
import { parkedTests } from './inbox/parked.ts'
import { pendingAskTests } from './inbox/pending-asks.ts'
import { pushConfigTests } from './inbox/push-configs.ts'
import { queueTests } from './inbox/queues.ts'
import { readTaskTests } from './inbox/read-tasks.ts'
import { recoverTests } from './inbox/recover.ts'
import { replyChunkTests } from './inbox/reply-chunks.ts'
import { resultLetterTests } from './inbox/result-letters.ts'
import { retentionTests } from './inbox/retention.ts'
import { ruleTests } from './inbox/rules.ts'
import { searchTests } from './inbox/search.ts'
import { sendAndWaitTests } from './inbox/send-and-wait.ts'
import { settleTests } from './inbox/settle.ts'
import { storyTests } from './inbox/story.ts'
import { takeoverTests } from './inbox/takeover.ts'
import { treeTests } from './inbox/trees.ts'
import { upkeepTests } from './inbox/upkeep.ts'
import { usageTests } from './inbox/usage.ts'
import { waitingTurnTests } from './inbox/waiting-turns.ts'
import type { StoreUnderTest } from './store-contract.ts'

export function inboxContract(underTest: StoreUnderTest): void {
  describe(`the inbox on ${underTest.name}`, () => {
    const harness = createInboxHarness(underTest)
    before(harness.open)
    after(harness.close)
    admitTests(harness)
    settleTests(harness)
    sendAndWaitTests(harness)
    cancelTests(harness)
    recoverTests(harness)
    readTaskTests(harness)
    replyChunkTests(harness)
    takeoverTests(harness)
    deadLetterTests(harness)
    waitingTurnTests(harness)
    budgetTests(harness)
    delegationTests(harness)
    delegationResultTests(harness)
    resultLetterTests(harness)
    pageTests(harness)
    searchTests(harness)
    pendingAskTests(harness)
    ruleTests(harness)
    needTests(harness)
    deliveryTests(harness)
    retentionTests(harness)
    noteTests(harness)
    pushConfigTests(harness)
    queueTests(harness)
    activityTests(harness)
    chatTests(harness)
    chatTurnTests(harness)
    storyTests(harness)
    treeTests(harness)
    historyTests(harness)
    usageTests(harness)
    parkedTests(harness)
    bridgeTests(harness)
    bridgeLeaseTests(harness)
    upkeepTests(harness)
  })
}
