import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Sender } from '../request.ts'
import { silenceInstruction } from './may-be-silent.ts'

test('GW-17 an agent hears of NO_REPLY in groups and for schedules that report, and no caller can pretend one', () => {
  const person: Sender = { kind: 'person', id: '1', name: 'Ada', door: 'discord', channel: 'discord' }
  const schedule: Sender = { kind: 'schedule', id: 's', name: 's', door: 'clock' }
  const hears = (metadata: Parameters<typeof silenceInstruction>[0], sender: Sender) =>
    silenceInstruction(metadata, sender).includes('NO_REPLY')
  assert.equal(hears({ chat: { place: '7' } }, person), true)
  assert.equal(hears({ chat: { place: '7', is_direct: true } }, person), false)
  assert.equal(hears({ schedule: { id: 's', reports: true } }, schedule), true)
  assert.equal(hears({ schedule: { id: 's' } }, schedule), false)
  assert.equal(hears(undefined, schedule), false)
  const { channel: _, ...caller } = person
  assert.equal(hears({ chat: { place: '7' }, schedule: { reports: true } }, caller), false)
})
