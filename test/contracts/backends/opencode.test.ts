import { opencode } from '../../../src/backends/opencode/opencode.ts'
import { createFakeAgents } from '../../fakes/agents/fake-program.ts'
import { backendContract } from './backend-contract.ts'
import { programSubject } from './program-subject.ts'

const fake = createFakeAgents()
const warm = (scenario: string) => ({ bin: fake('opencode', scenario) })
const oneShot = (scenario: string) => ({ ...warm(scenario), mode: 'oneshot' })

backendContract('BK-9 BK-4 AG-4 opencode, warm', {
  ...programSubject(warm, { max_time: '1s' }),
  definition: opencode,
  streaming: warm('echo'),
  staysWarm: true,
  failing: { values: warm('error-400'), code: 'provider_failed', complaint: 'fake 400' },
})

backendContract('BK-9 BK-4 AG-4 opencode, one-shot', {
  ...programSubject(oneShot, { max_time: '1s' }),
  definition: opencode,
  streaming: oneShot('stream'),
  failing: { values: oneShot('crash'), code: 'exit', complaint: 'no such luck' },
})
