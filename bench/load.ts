/**
 * Load on an HTTP server by bare sockets, so that the client costs little beside what it measures: one request at a
 * time on each connection, answers cut out by their Content-Length.
 */
import { once } from 'node:events'
import { connect } from 'node:net'

export interface LoadTarget {
  readonly port: number
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** The next request's body. */
  readonly body: () => string
  /** An answer without these words fails the run: a fast refusal must not look like speed. */
  readonly expected: string
}

interface LoadConnection {
  ask(): Promise<void>
  close(): void
}

/** Sends on every connection, one request after the other, for so long; gives how many were answered. */
export async function load(lines: readonly LoadConnection[], durationMs: number): Promise<number> {
  const untilMs = performance.now() + durationMs
  let answered = 0
  const work = lines.map(async (line) => {
    while (performance.now() < untilMs) {
      await line.ask()
      answered += 1
    }
  })
  await Promise.all(work)
  return answered
}

export function openConnections(target: LoadTarget, connections: number): Promise<LoadConnection[]> {
  return Promise.all(Array.from({ length: connections }, () => openConnection(target)))
}

async function openConnection(target: LoadTarget): Promise<LoadConnection> {
  const socket = connect({ host: '127.0.0.1', port: target.port, noDelay: true })
  await once(socket, 'connect')
  let received = ''
  let answer: PromiseWithResolvers<void> | undefined
  socket.setEncoding('latin1').on('data', (text: string) => {
    received += text
    if (!isWhole(received)) return
    if (received.includes(target.expected)) answer?.resolve()
    else answer?.reject(new Error(`not the answer expected: ${received.slice(0, 2000)}`))
    received = ''
  })
  socket.on('close', () => answer?.reject(new Error('the server closed the connection')))
  return {
    ask() {
      answer = Promise.withResolvers<void>()
      socket.write(requestText(target))
      return answer.promise
    },
    close: () => socket.destroy(),
  }
}

export function requestText({ path, headers, body }: LoadTarget): string {
  const text = body()
  const all = {
    Host: 'localhost',
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(text),
    ...headers,
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${text}`
}

function isWhole(answer: string): boolean {
  const end = answer.indexOf('\r\n\r\n')
  if (end === -1) return false
  const length = /content-length: (\d+)/i.exec(answer.slice(0, end))?.[1]
  if (length === undefined) throw new Error(`an answer without Content-Length: ${answer.slice(0, end)}`)
  return answer.length >= end + 4 + Number(length)
}

/** How long until the first event of a stream, on a connection of its own. */
export async function firstEventMs(target: LoadTarget): Promise<number> {
  const socket = connect({ host: '127.0.0.1', port: target.port, noDelay: true })
  await once(socket, 'connect')
  const startMs = performance.now()
  socket.write(requestText(target))
  let received = ''
  for await (const chunk of socket) {
    received += chunk
    if (/^data:/m.test(received)) break
  }
  const elapsedMs = performance.now() - startMs
  socket.destroy()
  if (!received.includes(target.expected)) throw new Error(`not the stream expected: ${received.slice(0, 2000)}`)
  return elapsedMs
}
