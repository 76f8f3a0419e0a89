import { join } from 'node:path'
import { stdio } from '../../../src/backends/stdio/stdio.ts'
import { backendContract } from './backend-contract.ts'

const program = join(import.meta.dirname, '..', '..', 'fakes', 'line-program.ts')
const as = (behaviour: string) => ({ cmd: `exec '${process.execPath}' '${program}' ${behaviour}` })

backendContract('BK-9 BK-4 AG-8 stdio', {
  definition: stdio,
  echo: as('echo'),
  // A reply is one line, so it has no deltas.
  streaming: null,
  endless: as('endless'),
  startsProcesses: true,
  staysWarm: true,
  failing: { values: as('complain'), code: 'exit', complaint: 'no such luck' },
  empty: { values: as('echo'), code: null },
  slow: { ...as('endless'), timeout: '600ms' },
  flood: as('flood'),
  keepsSession: false,
})
