/** Opens connections to one PostgreSQL server, with their timeouts. */
import { Client } from 'pg'
import { MoleculeError } from '../../errors.ts'
import { type SlowCommitsOptions, watchSlowCommits } from '../slow-commits.ts'
import { statement } from '../store.ts'
import { answerTimeout, createConnection, type PostgresConnection } from './connection.ts'
import { asConnectionError, unavailable } from './errors.ts'
import { createTranslator } from './statements.ts'

/** For name lookup, connect, log-in and the settings of the connection together. */
const CONNECT_MS_MAX = 2000
/** A connection that does not answer for this long is lost, even if it is still open. */
const ANSWER_MS_MAX = 30_000
/** Shorter than `ANSWER_MS_MAX`, so that the server cancels a statement before the connection is lost. */
const STATEMENT_MS_MAX = 25_000
/** A node that died inside a transaction holds its locks no longer than this. */
const IDLE_IN_TRANSACTION_MS_MAX = 10_000
/** A group commit waits no longer for a lock; its operations then run alone (`group-commit.ts`). */
const GROUP_LOCK_MS_MAX = 50
const KEEP_ALIVE_MS = 10_000

export interface ConnectionTimeouts {
  /** How long a statement may run, and how long it may wait for a lock; 0 = no limit. */
  readonly statementMs: number
  readonly lockMs: number
  readonly answerMs: number
}

const DEFAULT_TIMEOUTS: ConnectionTimeouts = {
  statementMs: STATEMENT_MS_MAX,
  lockMs: GROUP_LOCK_MS_MAX,
  answerMs: ANSWER_MS_MAX,
}

export interface Connector {
  /** Rejects with `store_unavailable` and the reason, within two seconds; also for a server that loses commits. */
  connect(timeouts?: ConnectionTimeouts): Promise<PostgresConnection>
}

/** Throws `bad_config` for an invalid address. */
export function createConnector(url: string, { clock, log, metrics }: SlowCommitsOptions): Connector {
  const translate = createTranslator()
  const onCommit = watchSlowCommits({ clock, log, metrics })
  // Only host and port of the URL may be shown: the rest may contain a password.
  const { host, port } = newClient(url)
  const address = `${host}:${port}`
  return {
    async connect(timeouts = DEFAULT_TIMEOUTS) {
      const client = newClient(url)
      const connection = createConnection(client, {
        clock,
        address,
        translate,
        onCommit,
        answerMs: timeouts.answerMs,
      })
      const cancelTimer = clock.after(CONNECT_MS_MAX, () => connection.lose(answerTimeout(address, CONNECT_MS_MAX)))
      try {
        await client.connect()
        await connection.control(connectionSettings(timeouts))
        await refuseForgetfulServer(connection, address)
        return connection
      } catch (error) {
        connection.lose(asConnectionError(error, address))
        throw connection.lost
      } finally {
        cancelTimer()
      }
    },
  }
}

function newClient(url: string): Client {
  try {
    if (!/^postgres(ql)?:\/\//.test(url)) throw new TypeError('not a postgres:// address')
    return new Client({
      connectionString: url,
      application_name: 'molecule',
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    })
  } catch {
    // Without a cause: a parse error may quote the whole address with its password.
    const message = 'the database address is invalid: it must look like postgres://user:password@host:5432/name'
    throw new MoleculeError('bad_config', message)
  }
}

/**
 * Sent as statements: a connection pooler refuses them as startup parameters. Where the server, the database or the role
 * turns `synchronous_commit` off, a crash lost messages that were acknowledged. Other values stay: all of them wait for
 * the disk, and some for a replica too.
 */
const connectionSettings = ({ statementMs, lockMs }: ConnectionTimeouts): string =>
  `set statement_timeout = ${statementMs}; set lock_timeout = ${lockMs};
   set idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_MS_MAX};
   set session characteristics as transaction isolation level read committed;
   select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'`

const DURABILITY = statement(
  "select current_setting('fsync') as fsync, current_setting('synchronous_commit') as synchronous_commit",
)

/** Asks the server again, because a connection cannot set `fsync`, and a pooler may drop what a connection sets. */
async function refuseForgetfulServer(connection: PostgresConnection, address: string): Promise<void> {
  const [[row] = []] = await connection.send([DURABILITY])
  for (const name of ['fsync', 'synchronous_commit']) {
    if (row?.[name] !== 'off') continue
    const risk = `PostgreSQL at ${address} has ${name}=off, so a power failure would lose accepted messages`
    throw unavailable(`${risk}: set ${name}=on there`)
  }
}
