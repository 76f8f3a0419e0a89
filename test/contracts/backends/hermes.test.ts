import { hermes } from '../../../src/backends/hermes/hermes.ts'
import { createFakeAgents } from '../../fakes/agents/fake-program.ts'
import { backendContract } from './backend-contract.ts'
import { programSubject } from './program-subject.ts'

const fake = createFakeAgents()
const warm = (scenario: string) => ({ bin: fake('hermes', scenario) })
const oneShot = (scenario: string) => ({ ...warm(scenario), mode: 'oneshot' })

backendContract('BK-9 BK-4 AG-5 AG-7 hermes, warm', {
  ...programSubject(warm, { max_time: '1s' }),
  definition: hermes,
  streaming: warm('echo'),
  staysWarm: true,
  failing: { values: warm('error-401'), code: 'auth_failed', complaint: 'fake 401' },
})

backendContract('BK-9 BK-4 AG-5 hermes, one-shot', {
  ...programSubject(oneShot, { max_time: '1s' }),
  definition: hermes,
  streaming: oneShot('echo'),
  failing: { values: oneShot('crash'), code: 'exit', complaint: 'no such luck' },
})
