/**
 * Load on an HTTP server over bare sockets, so that the client costs little compared with the server: one request at a
 * time on each connection, answers delimited by their Content-Length.
 */
import { once } from 'node:events'
import { connect } from 'node:net'

export interface LoadTarget {
  readonly port: number
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** Returns the body of the next request. */
  readonly body: () => string
  /** An answer without this text fails the run: a fast refusal must not look like speed. */
  readonly expected: string
}

interface LoadConnection {
  send(): Promise<void>
  close(): void
}

/** Sends one request after the other on every connection for `durationMs`; returns the number of answers. */
export async function load(connections: readonly LoadConnection[], durationMs: number): Promise<number> {
  const untilMs = performance.now() + durationMs
  let answered = 0
  const work = connections.map(async (connection) => {
    while (performance.now() < untilMs) {
      await connection.send()
      answered += 1
    }
  })
  await Promise.all(work)
  return answered
}

export function openConnections(target: LoadTarget, count: number): Promise<LoadConnection[]> {
  return Promise.all(Array.from({ length: count }, () => openConnection(target)))
}

async function openConnection(target: LoadTarget): Promise<LoadConnection> {
  const socket = connect({ host: '127.0.0.1', port: target.port, noDelay: true })
  await once(socket, 'connect')
  let received = ''
  let answer: PromiseWithResolvers<void> | undefined
  socket.setEncoding('latin1').on('data', (text: string) => {
    received += text
    if (!isComplete(received)) return
    if (received.includes(target.expected)) answer?.resolve()
    else answer?.reject(new Error(`unexpected answer: ${received.slice(0, 2000)}`))
    received = ''
  })
  socket.on('close', () => answer?.reject(new Error('the server closed the connection')))
  return {
    send() {
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

function isComplete(answer: string): boolean {
  const end = answer.indexOf('\r\n\r\n')
  if (end === -1) return false
  const length = /content-length: (\d+)/i.exec(answer.slice(0, end))?.[1]
  if (length === undefined) throw new Error(`an answer without Content-Length: ${answer.slice(0, end)}`)
  return answer.length >= end + 4 + Number(length)
}

/** The time to the first event of a stream, on a new connection. */
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
  if (!received.includes(target.expected)) throw new Error(`unexpected stream: ${received.slice(0, 2000)}`)
  return elapsedMs
}
