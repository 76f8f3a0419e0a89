/**
 * A platform to be killed: runs one line of shell under supervision until somebody ends it with SIGKILL, which is
 * what a crash looks like. Arguments: records folder, owner, the line.
 */
import { systemClock } from '../../src/clock.ts'
import { silentLog } from '../../src/log.ts'
import { createProcesses } from '../../src/process/create-processes.ts'

const [recordsDir = '', owner = '', line = ''] = process.argv.slice(2)
const processes = createProcesses({ owner, recordsDir, clock: systemClock, log: silentLog })
await processes.run(
  {
    command: ['/bin/sh', '-c', line],
    cwd: recordsDir,
    env: { PATH: '/usr/local/bin:/usr/bin:/bin' },
    mark: 'orphaned',
    input: '',
    outputBytesMax: 1_000,
    stderrBytesKept: 1_000,
  },
  new AbortController().signal,
)
