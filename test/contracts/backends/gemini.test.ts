import { gemini } from '../../../src/backends/gemini/gemini.ts'
import { createFakeAgents } from '../../fakes/agents/fake-program.ts'
import { backendContract } from './backend-contract.ts'

const fake = createFakeAgents()
const warm = (scenario: string) => ({ bin: fake('gemini', scenario) })
const oneShot = (scenario: string) => ({ ...warm(scenario), mode: 'oneshot' })

backendContract('BK-9 BK-4 AG-3 gemini, warm', {
  definition: gemini,
  echo: warm('echo'),
  streaming: warm('echo'),
  endless: warm('endless'),
  startsProcesses: true,
  staysWarm: true,
  failing: { values: warm('error-400'), code: 'bad_request', complaint: 'fake 400' },
  empty: { values: warm('empty'), code: 'empty_response' },
  slow: { ...warm('endless'), max_time: '1s' },
  flood: warm('flood'),
  keepsSession: true,
})

backendContract('BK-9 BK-4 AG-3 gemini, one-shot', {
  definition: gemini,
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
