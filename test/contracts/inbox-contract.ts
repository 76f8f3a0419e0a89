/** The contract of the inbox, run on every engine: what happens to a message in each case. */
import { after, before, describe } from 'node:test'
import { admitTests } from './inbox/admit/admit.ts'
import { queueTests } from './inbox/admit/queues.ts'
import { sendAndWaitTests } from './inbox/admit/send-and-wait.ts'
import { needTests } from './inbox/ask/needs.ts'
import { pendingAskTests } from './inbox/ask/pending-asks.ts'
import { ruleTests } from './inbox/ask/rules.ts'
import { budgetTests } from './inbox/budget/budgets.ts'
import { delegationResultTests } from './inbox/delegate/delegation-results.ts'
import { delegationTests } from './inbox/delegate/delegations.ts'
import { resultLetterTests } from './inbox/delegate/result-letters.ts'
import { treeTests } from './inbox/delegate/trees.ts'
import { deliveryTests } from './inbox/deliver/deliveries.ts'
import { deliveryTriesTests } from './inbox/deliver/delivery-tries.ts'
import { ownDeliveryTests } from './inbox/deliver/own-deliveries.ts'
import { pushConfigTests } from './inbox/deliver/push-configs.ts'
import { createInboxHarness } from './inbox/harness.ts'
import { bridgeLeaseTests } from './inbox/lease/bridge-leases.ts'
import { bridgeTests } from './inbox/lease/bridges.ts'
import { parkedTests } from './inbox/lease/parked.ts'
import { recoverTests } from './inbox/lease/recover.ts'
import { takeoverTests } from './inbox/lease/takeover.ts'
import { waitingTurnTests } from './inbox/lease/waiting-turns.ts'
import { activityTests } from './inbox/read/activity.ts'
import { chatTurnTests } from './inbox/read/chat-turns.ts'
import { chatTests } from './inbox/read/chats.ts'
import { historyTests } from './inbox/read/history.ts'
import { pageTests } from './inbox/read/pages.ts'
import { readTaskTests } from './inbox/read/read-tasks.ts'
import { searchTests } from './inbox/read/search.ts'
import { storyTests } from './inbox/read/story.ts'
import { usageTests } from './inbox/read/usage.ts'
import { amendTests } from './inbox/settle/amend.ts'
import { cancelTests } from './inbox/settle/cancel.ts'
import { deadLetterTests } from './inbox/settle/dead-letters.ts'
import { noteTests } from './inbox/settle/notes.ts'
import { replyChunkTests } from './inbox/settle/reply-chunks.ts'
import { settleTests } from './inbox/settle/settle.ts'
import { retentionTests } from './inbox/upkeep/retention.ts'
import { upkeepTests } from './inbox/upkeep/upkeep.ts'
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
    amendTests(harness)
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
    deliveryTriesTests(harness)
    ownDeliveryTests(harness)
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
