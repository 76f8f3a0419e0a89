import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import { temporaryDir } from '../../../test/harness/process-harness.ts'
import { MoleculeError } from '../../errors.ts'
import type { Inbox, LeaseKey, Outcome } from '../../inbox/worker.ts'
import { silentLog } from '../../log.ts'
import { createSpool } from './spool.ts'

const KEY: LeaseKey = { workspaceId: 'ws_1', conversationId: 'c1', taskId: 't1', messageId: 'm1', epoch: 3 }
const failure = { code: 'exit', message: 'it broke' }
const UNSENT = { from: 4, events: [{ type: 'text', delta: 'hel' }] } as const

const OUTCOMES: Readonly<Record<Outcome['type'], { outcome: Outcome; isKept: boolean }>> = {
  done: { outcome: { type: 'done', finality: 'completed', parts: [{ text: 'a' }], artifacts: [] }, isKept: true },
  retry: { outcome: { type: 'retry', failure, afterMs: 5000, reason: 'failure', interrupted: true }, isKept: true },
  dead: { outcome: { type: 'dead', failure }, isKept: true },
  stopped: { outcome: { type: 'stopped' }, isKept: false },
  released: { outcome: { type: 'released', interrupted: false }, isKept: false },
}

/** An inbox that only settles: it throws until it is `up`. */
function settlingInbox() {
  const settled: unknown[] = []
  const state = { up: false }
  const inbox = {
    async settle(...args: unknown[]) {
      if (!state.up) throw new MoleculeError('timeout', 'the platform is away')
      settled.push(args)
      return 'settled'
    },
  } as unknown as Inbox
  return { inbox, settled, state }
}

for (const { outcome, isKept } of Object.values(OUTCOMES)) {
  const title = isKept ? 'is posted after a restart of the bridge' : 'is not kept: it cost the agent no work'
  test(`CN-4 the outcome ${outcome.type} ${title}`, async (t) => {
    const dir = temporaryDir(t)
    const { inbox, settled, state } = settlingInbox()
    await assert.rejects(createSpool({ dir, log: silentLog }).wrapInbox(inbox).settle(KEY, outcome, UNSENT))
    // The bridge is killed here. Its successor has the folder and nothing else.
    const spool = createSpool({ dir, log: silentLog })
    assert.equal(await spool.count(), isKept ? 1 : 0)
    state.up = true
    const posted: string[] = []
    await spool.post(inbox, (result, subject) => posted.push(`${result} ${subject}`), new AbortController().signal)
    assert.deepEqual(settled, isKept ? [[KEY, outcome, UNSENT]] : [])
    assert.deepEqual(posted, isKept ? ['settled t1'] : [])
    assert.deepEqual(readdirSync(dir), [])
  })
}
