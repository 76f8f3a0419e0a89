import { codex } from '../../../src/backends/codex/codex.ts'
import { createFakeProgram } from '../../fakes/agents/fake-program.ts'
import { backendContract } from './backend-contract.ts'
import { programSubject } from './program-subject.ts'

const { path: bin } = createFakeProgram('codex')
const warm = (behaviour: string) => ({ bin, args: `--fake ${behaviour}` })
const oneShot = (behaviour: string) => ({ ...warm(behaviour), mode: 'oneshot' })
const failure = { code: 'exit', complaint: 'no such luck' } as const

backendContract('BK-9 BK-4 AG-2 codex, warm', {
  ...programSubject(warm, { max_time: '900ms' }),
  definition: codex,
  streaming: warm('stream'),
  staysWarm: true,
  failing: { values: warm('complain'), ...failure },
})

backendContract('BK-9 BK-4 AG-2 codex, one-shot', {
  ...programSubject(oneShot, { max_time: '900ms' }),
  definition: codex,
  // Each of its messages comes whole.
  streaming: null,
  failing: { values: oneShot('complain'), ...failure },
})
