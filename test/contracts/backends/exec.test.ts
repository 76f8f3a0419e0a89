import { exec } from '../../../src/backends/exec/exec.ts'
import { backendContract } from './backend-contract.ts'

backendContract('BK-9 BK-4 exec', {
  definition: exec,
  echo: { cmd: 'cat' },
  // The pause makes two chunks of the output.
  streaming: { cmd: 'head -c 7; sleep 0.05; cat' },
  endless: { cmd: 'setsid sleep 300 & sleep 300', timeout: 'none' },
  startsProcesses: true,
  failing: { values: { cmd: 'echo no such luck >&2; exit 3' }, code: 'exit', complaint: 'no such luck' },
  empty: { values: { cmd: 'true' }, code: null },
  slow: { cmd: 'setsid sleep 300 & sleep 300', timeout: '300ms' },
  flood: { cmd: 'yes' },
  keepsSession: false,
})
