import { hermes } from '../../../src/backends/hermes/hermes.ts'
import { createFakeAgents } from '../../fakes/agents/fake-program.ts'
import { backendContract } from './backend-contract.ts'

const fake = createFakeAgents()
const warm = (scenario: string) => ({ bin: fake('hermes', scenario) })
const bin = (scenario: string) => ({ ...warm(scenario), mode: 'oneshot' })

backendContract('BK-9 BK-4 AG-5 AG-7 hermes, warm', {
  definition: hermes,
  echo: warm('echo'),
  streaming: warm('echo'),
  endless: warm('endless'),
  startsProcesses: true,
  staysWarm: true,
  failing: { values: warm('error-401'), code: 'auth_failed', complaint: 'fake 401' },
  empty: { values: warm('empty'), code: 'empty_response' },
  slow: { ...warm('endless'), max_time: '1s' },
  flood: warm('flood'),
  keepsSession: true,
})

backendContract('BK-9 BK-4 AG-5 hermes, one-shot', {
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
