import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { backend } from '../../../docs/backends/example-adapter/parrot.ts'
import { backendContract } from './backend-contract.ts'

backendContract('BK-9 RT-10 the example of an adapter', {
  definition: backend,
  echo: {},
  streaming: {},
  endless: { pause: '300000' },
  startsProcesses: false,
  failing: { values: { mood: 'grumpy' }, code: 'agent_failed', complaint: 'not today' },
  empty: { values: {}, code: null },
  // It has no timeout of its own: the runtime ends a stalled turn.
  slow: null,
  flood: null,
  keepsSession: false,
})

test('RT-10 the package exports the seams and the contract suite for authors of adapters', async () => {
  const fileOf = (name: string) => fileURLToPath(import.meta.resolve(`molecule/${name}`))
  for (const name of ['backend', 'door', 'testing']) assert.ok(existsSync(fileOf(name)), name)
  const testing: unknown = await import(fileOf('testing'))
  assert.equal((testing as { backendContract: unknown }).backendContract, backendContract)
})
