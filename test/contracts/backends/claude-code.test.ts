import { claudeCode } from '../../../src/backends/claude-code/claude-code.ts'
import { createFakeProgram } from '../../fakes/agents/fake-program.ts'
import { backendContract } from './backend-contract.ts'

const { path: bin } = createFakeProgram('claude')
const session = (behaviour: string, more = {}) => ({ bin, args: `--fake ${behaviour}`, ...more })
const oneshot = (behaviour: string, more = {}) => session(behaviour, { mode: 'oneshot', ...more })

backendContract('BK-9 BK-4 claude-code, warm', {
  definition: claudeCode,
  echo: session('echo'),
  streaming: session('stream'),
  endless: session('endless'),
  startsProcesses: true,
  staysWarm: true,
  failing: { values: session('complain'), code: 'exit', complaint: 'no such luck' },
  empty: { values: session('empty'), code: 'empty_response' },
  slow: session('endless', { max_time: '600ms' }),
  flood: session('flood'),
  keepsSession: true,
})

backendContract('BK-9 BK-4 claude-code, one-shot', {
  definition: claudeCode,
  echo: oneshot('echo'),
  // It prints one object at its end.
  streaming: null,
  endless: oneshot('endless'),
  startsProcesses: true,
  failing: { values: oneshot('complain'), code: 'exit', complaint: 'no such luck' },
  empty: { values: oneshot('empty'), code: 'empty_response' },
  slow: oneshot('endless', { timeout: '600ms' }),
  flood: oneshot('flood'),
  keepsSession: true,
})
