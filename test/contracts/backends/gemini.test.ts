import { gemini } from '../../../src/backends/gemini/gemini.ts'
import { createFakeAgents } from '../../fakes/agents/fake-program.ts'
import { backendContract } from './backend-contract.ts'
import { programSubject } from './program-subject.ts'

const fake = createFakeAgents()
const warm = (scenario: string) => ({ bin: fake('gemini', scenario) })
const oneShot = (scenario: string) => ({ ...warm(scenario), mode: 'oneshot' })

backendContract('BK-9 BK-4 AG-3 gemini, warm', {
  ...programSubject(warm, { max_time: '1s' }),
  definition: gemini,
  streaming: warm('echo'),
  staysWarm: true,
  failing: { values: warm('error-400'), code: 'bad_request', complaint: 'fake 400' },
})

backendContract('BK-9 BK-4 AG-3 gemini, one-shot', {
  ...programSubject(oneShot, { max_time: '1s' }),
  definition: gemini,
  streaming: oneShot('stream'),
  failing: { values: oneShot('crash'), code: 'exit', complaint: 'no such luck' },
})
