import { hermes } from '../../src/backends/hermes/hermes.ts'
import { createFakeAgents } from '../fakes/agents/fake-program.ts'
import { backendContract } from './backend-contract.ts'

const fake = createFakeAgents()
const bin = (scenario: string) => ({ bin: fake('hermes', scenario) })

backendContract('BK-9 BK-4 AG-5 hermes', {
  definition: hermes,
  echo: bin('echo'),
  streaming: bin('echo'),
  endless: bin('endless'),
  startsProcesses: true,
  failing: { values: bin('crash'), code: 'exit', complaint: 'no such luck' },
  empty: { values: bin('empty'), code: 'empty_response' },
  slow: { ...bin('endless'), max_time: '1s' },
  flood: bin('flood'),
  keepsSession: true,
})
