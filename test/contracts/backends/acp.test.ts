import { acp } from '../../../src/backends/acp/acp.ts'
import { createFakeAgents } from '../../fakes/agents/fake-program.ts'
import { backendContract } from './backend-contract.ts'

const fake = createFakeAgents()
const cmd = (scenario: string) => ({ cmd: fake('acp', scenario) })

backendContract('BK-9 BK-4 AG-7 acp', {
  definition: acp,
  echo: cmd('echo'),
  streaming: cmd('echo'),
  endless: cmd('endless'),
  startsProcesses: true,
  staysWarm: true,
  failing: { values: cmd('error-400'), code: 'bad_request', complaint: 'fake 400' },
  empty: { values: cmd('empty'), code: 'empty_response' },
  slow: { ...cmd('endless'), max_time: '700ms' },
  flood: cmd('flood'),
  keepsSession: true,
})
