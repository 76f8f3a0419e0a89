/**
 * A stand-in for a platform that crashes: runs a shell command under supervision until the test kills it with SIGKILL.
 * Arguments: records folder, owner, the command.
 */
import { systemClock } from '../../src/clock.ts'
import { silentLog } from '../../src/log.ts'
import { createProcesses } from '../../src/process/create-processes.ts'
import { PLAIN_ENVIRONMENT } from '../harness/process-harness.ts'

const [recordsDir = '', owner = '', line = ''] = process.argv.slice(2)
const processes = createProcesses({ owner, recordsDir, clock: systemClock, log: silentLog })
await processes.run(
  {
    command: ['/bin/sh', '-c', line],
    cwd: recordsDir,
    env: PLAIN_ENVIRONMENT,
    mark: 'orphaned',
    input: '',
    outputBytesMax: 1_000,
    stderrBytesKept: 1_000,
  },
  new AbortController().signal,
)
