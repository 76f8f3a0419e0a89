/**
 * A stand-in for a platform that was restarted from inside one of its own turns: it has the mark of that turn and leads
 * the process group of its record. When it reaps orphans it must not kill itself. Arguments: records folder, owner.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { silentLog } from '../../src/log.ts'
import { bootId, startTimeOf } from '../../src/process/identity.ts'
import { reapOrphans } from '../../src/process/orphan-records.ts'

const [recordsDir = '', owner = ''] = process.argv.slice(2)
const record = { pid: process.pid, startTime: await startTimeOf(process.pid), bootId: await bootId(), mark: 'turn' }
writeFileSync(join(recordsDir, `${process.pid}.json`), JSON.stringify(record))
const killed = await reapOrphans({ recordsDir, owner, log: silentLog })
process.stdout.write(`survived, killed ${killed}`)
