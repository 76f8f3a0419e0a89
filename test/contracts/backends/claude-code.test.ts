import { claudeCode } from '../../../src/backends/claude-code/claude-code.ts'
import { createFakeProgram } from '../../fakes/agents/fake-program.ts'
import { backendContract } from './backend-contract.ts'
import { programSubject } from './program-subject.ts'

const { path: bin } = createFakeProgram('claude')
const warm = (behaviour: string) => ({ bin, args: `--fake ${behaviour}` })
const oneShot = (behaviour: string) => ({ ...warm(behaviour), mode: 'oneshot' })
const failure = { code: 'exit', complaint: 'no such luck' } as const

backendContract('BK-9 BK-4 claude-code, warm', {
  ...programSubject(warm, { max_time: '600ms' }),
  definition: claudeCode,
  streaming: warm('stream'),
  staysWarm: true,
  failing: { values: warm('complain'), ...failure },
})

backendContract('BK-9 BK-4 claude-code, one-shot', {
  ...programSubject(oneShot, { timeout: '600ms' }),
  definition: claudeCode,
  // It prints one object at its end.
  streaming: null,
  failing: { values: oneShot('complain'), ...failure },
})
