import { mock } from '../../../src/backends/mock/mock.ts'
import { backendContract } from './backend-contract.ts'

backendContract('BK-9 BK-4 mock', {
  definition: mock,
  echo: { reply: '%s', session: 'true' },
  streaming: { reply: '%s', stream: 'true' },
  endless: { delay: '1h' },
  startsProcesses: false,
  failing: { values: { fail: 'no such luck' }, code: 'exit', complaint: 'no such luck' },
  empty: { values: { reply: '%s' }, code: null },
  // It starts no process.
  slow: null,
  flood: null,
  keepsSession: true,
})
