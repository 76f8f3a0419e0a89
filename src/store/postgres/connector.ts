/** Makes connections to one PostgreSQL: where it is, how long each thing may take. */
import { Client } from 'pg'
import type { Clock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import { answerTimeout, createConnection, type PostgresConnection } from './connection.ts'
import { asConnectionError } from './errors.ts'
import { createTranslator } from './statements.ts'

/** Looking up, connecting, logging in and the session settings together. */
const CONNECT_MS_MAX = 2000
/** A connection that owes an answer for so long is taken to be dead, though nobody closed it. */
const ANSWER_MS_MAX = 30_000
/** The server gives up a statement before we give up the connection. */
const STATEMENT_MS_MAX = 25_000
/** A node that died with a transaction open holds its locks no longer than this. */
const IDLE_IN_TRANSACTION_MS_MAX = 10_000
/** A transaction of many operations waits for no lock longer than this: see group.ts. */
const GROUP_LOCK_MS_MAX = 50
const KEEP_ALIVE_MS = 10_000

export interface ConnectionTimeouts {
  /** How long a statement may run, and how long it may wait for a lock; 0 = for ever. */
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
  /** Rejects with `store_unavailable` and the reason, within two seconds. */
  connect(timeouts?: ConnectionTimeouts): Promise<PostgresConnection>
}

/** Throws `bad_config` for an address that cannot be read. */
export function createConnector(url: string, clock: Clock): Connector {
  const translate = createTranslator()
  // Host and port are all of the URL that may ever be shown.
  const { host, port } = newClient(url)
  const address = `${host}:${port}`
  return {
    async connect(timeouts = DEFAULT_TIMEOUTS) {
      const client = newClient(url)
      const connection = createConnection(client, { clock, address, translate, answerMs: timeouts.answerMs })
      const cancelTimer = clock.after(CONNECT_MS_MAX, () => connection.lose(answerTimeout(address, CONNECT_MS_MAX)))
      try {
        await client.connect()
        await connection.control(sessionSettings(timeouts))
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
    // Not kept as cause: an error of parsing may quote the whole address, password included.
    const message = 'the database address cannot be read: it must look like postgres://user:password@host:5432/name'
    throw new MoleculeError('bad_config', message)
  }
}

/** Sent as statements and not at start-up, where a connection pooler in between would refuse them. */
const sessionSettings = ({ statementMs, lockMs }: ConnectionTimeouts): string =>
  `set statement_timeout = ${statementMs}; set lock_timeout = ${lockMs};
   set idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_MS_MAX};
   set session characteristics as transaction isolation level read committed`
