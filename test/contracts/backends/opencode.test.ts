import { opencode } from '../../../src/backends/opencode/opencode.ts'
import { createFakeAgents } from '../../fakes/agents/fake-program.ts'
import { backendContract } from './backend-contract.ts'

const fake = createFakeAgents()
const warm = (scenario: string) => ({ bin: fake('opencode', scenario) })
const oneShot = (scenario: string) => ({ ...warm(scenario), mode: 'oneshot' })

backendContract('BK-9 BK-4 AG-4 opencode, warm', {
  definition: opencode,
  echo: warm('echo'),
  streaming: warm('echo'),
  endless: warm('endless'),
  startsProcesses: true,
  staysWarm: true,
  failing: { values: warm('error-400'), code: 'provider_failed', complaint: 'fake 400' },
  empty: { values: warm('empty'), code: 'empty_response' },
  slow: { ...warm('endless'), max_time: '1s' },
  flood: warm('flood'),
  keepsSession: true,
})

backendContract('BK-9 BK-4 AG-4 opencode, one-shot', {
  definition: opencode,
  echo: oneShot('echo'),
  streaming: oneShot('stream'),
  endless: oneShot('endless'),
  startsProcesses: true,
  failing: { values: oneShot('crash'), code: 'exit', complaint: 'no such luck' },
  empty: { values: oneShot('empty'), code: 'empty_response' },
  slow: { ...oneShot('endless'), max_time: '1s' },
  flood: oneShot('flood'),
  keepsSession: true,
})
