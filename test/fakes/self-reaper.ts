/**
 * A platform restarted from inside one of its own turns: it carries the mark of that turn, leads the group that the
 * record names, and reaps. It must not end itself. Arguments: records folder, owner.
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
