/**
 * A proxy between a platform and its PostgreSQL that can lose the answer to one COMMIT: the server has committed, the
 * connection breaks, and the platform cannot know. Stopping the server does not do that reliably. It can also stall.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface DatabaseProxy {
  /** The address of the database through the proxy. */
  readonly url: string
  /** Loses the answer to the next COMMIT on a connection that has sent this text; resolves when it is lost. */
  loseCommitOf(text: string): Promise<void>
  /** From now on no answer of the database arrives, without an error, as in a database whose disk hangs. */
  stall(): void
  /** From now on each COMMIT is answered this much later, as by a database on a slow disk. */
  delayCommits(delayMs: number): void
  close(): Promise<void>
}

interface CommitToLose {
  readonly text: string
  readonly lost: () => void
}

const COMMITTED = Buffer.from('COMMIT\0')

export async function startDatabaseProxy(databaseUrl: string): Promise<DatabaseProxy> {
  const { port, hostname } = new URL(databaseUrl)
  const sockets = new Set<Socket>()
  let waiting: CommitToLose | undefined
  let isStalled = false
  let commitDelayMs = 0
  const server = createServer((inner) => {
    const outer = connect(Number(port), hostname)
    const both = [inner, outer]
    const end = () => {
      for (const socket of both) socket.destroy()
    }
    for (const socket of both) {
      sockets.add(socket)
      socket.on('error', end).on('close', () => {
        sockets.delete(socket)
        end()
      })
    }
    let hasSentText = false
    inner.on('data', (chunk) => {
      if (waiting !== undefined && chunk.includes(waiting.text)) hasSentText = true
      outer.write(chunk)
    })
    outer.on('data', (chunk) => {
      if (isStalled) return
      if (commitDelayMs > 0 && chunk.includes(COMMITTED))
        return void setTimeout(() => inner.write(chunk), commitDelayMs)
      if (!hasSentText || waiting === undefined || !chunk.includes(COMMITTED)) return void inner.write(chunk)
      const { lost } = waiting
      waiting = undefined
      end()
      lost()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = new URL(databaseUrl)
  address.port = String((server.address() as AddressInfo).port)
  return {
    url: address.href,
    loseCommitOf: (text) =>
      new Promise((resolve) => {
        waiting = { text, lost: resolve }
      }),
    stall() {
      isStalled = true
    },
    delayCommits(delayMs) {
      commitDelayMs = delayMs
    },
    async close() {
      server.close()
      for (const socket of sockets) socket.destroy()
      await once(server, 'close')
    },
  }
}
