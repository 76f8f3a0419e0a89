import { codex } from '../../../src/backends/codex/codex.ts'
import { createFakeProgram } from '../../fakes/agents/fake-program.ts'
import { backendContract } from './backend-contract.ts'

const { path: bin } = createFakeProgram('codex')
const session = (behaviour: string, more = {}) => ({ bin, args: `--fake ${behaviour}`, ...more })
const oneshot = (behaviour: string, more = {}) => session(behaviour, { mode: 'oneshot', ...more })

backendContract('BK-9 BK-4 AG-2 codex, warm', {
  definition: codex,
  echo: session('echo'),
  streaming: session('stream'),
  endless: session('endless'),
  startsProcesses: true,
  staysWarm: true,
  failing: { values: session('complain'), code: 'exit', complaint: 'no such luck' },
  empty: { values: session('empty'), code: 'empty_response' },
  slow: session('endless', { max_time: '900ms' }),
  flood: session('flood'),
  keepsSession: true,
})

backendContract('BK-9 BK-4 AG-2 codex, one-shot', {
  definition: codex,
  echo: oneshot('echo'),
  // Each of its messages comes whole.
  streaming: null,
  endless: oneshot('endless'),
  startsProcesses: true,
  failing: { values: oneshot('complain'), code: 'exit', complaint: 'no such luck' },
  empty: { values: oneshot('empty'), code: 'empty_response' },
  slow: oneshot('endless', { max_time: '900ms' }),
  flood: oneshot('flood'),
  keepsSession: true,
})
