/**
 * One platform of a host id on a database. At start a platform voids the leases of its host id, because the process that
 * had them is dead. A copied data folder has the id of its original: without this lock it would void the leases of a
 * platform that is alive. The lock is the server's own and ends with the connection.
 */
import type { Clock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import type { Log } from '../../log.ts'
import { sleep } from '../../wait.ts'
import { statement } from '../store.ts'
import type { PostgresConnection } from './connection.ts'

/** The server drops a connection whose machine is gone (power loss) after 5 + 3 * 2 s, and its lock with it. */
const KEEPALIVE = 'set tcp_keepalives_idle = 5; set tcp_keepalives_interval = 2; set tcp_keepalives_count = 3'
/** Longer than that. A lock that is held for longer belongs to a platform that is alive. */
const WAIT_MS_MAX = 15_000
const POLL_MS = 250
/** The first of the two numbers of the lock; the second comes from the host id. Spells "host". */
const LOCK_CLASS = 0x686f7374

export interface HostLockOptions {
  readonly host: string
  readonly clock: Clock
  readonly log: Log
}

/** Takes the lock on a new connection. Throws `in_use` at start; later, after a lost connection, it only warns. */
export function createHostLock({ host, clock, log }: HostLockOptions) {
  const take = statement(`select case when pg_try_advisory_lock(${LOCK_CLASS}, $1) then 1 else 0 end as taken`, [
    numberOf(host),
  ])
  let hasStarted = false
  return async (connection: PostgresConnection): Promise<void> => {
    await connection.control(KEEPALIVE)
    const untilMs = clock.monotonicMs() + WAIT_MS_MAX
    for (;;) {
      const [rows] = await connection.send([take])
      if (Number(rows?.[0]?.['taken']) === 1) break
      if (hasStarted) {
        // Mostly its own earlier connection, which the server has not dropped yet.
        log.warn({ host }, 'another connection to the database holds the lock of this host')
        break
      }
      if (clock.monotonicMs() >= untilMs) throw hostInUse(host)
      await sleep(clock, POLL_MS)
    }
    hasStarted = true
  }
}

const hostInUse = (host: string): MoleculeError =>
  new MoleculeError(
    'in_use',
    `a platform with the same host id (${host}) runs on this database. If this data folder is a copy of its folder, start it with --as copy`,
    { details: { host } },
  )

/** FNV-1a, as the signed number that the server wants. */
function numberOf(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  return hash | 0
}
