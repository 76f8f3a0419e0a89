/** A client of `WS /ws` that keeps every message it receives. */
import { once } from 'node:events'
import { type ClientOptions, WebSocket } from 'ws'
import { within } from '../wait.ts'

export interface SocketClient {
  readonly socket: WebSocket
  // biome-ignore lint/suspicious/noExplicitAny: tests read messages of every shape
  readonly messages: any[]
  send(message: unknown): void
  /** The numbers received of a workspace, in order. */
  seqs(workspaceId: string): number[]
  /** The close code: that of the server, or 1006 where the connection broke. */
  readonly closed: Promise<number>
}

/** Opens a socket and keeps all messages. Rejects with the status when the upgrade is refused. */
export async function connectSocket(
  url: string,
  options: ClientOptions & { protocols?: string[]; path?: string } = {},
): Promise<SocketClient> {
  const { protocols = [], path = '/ws', ...rest } = options
  const socket = new WebSocket(url.replace(/^http/, 'ws') + path, protocols, rest)
  const messages: unknown[] = []
  const closed = new Promise<number>((resolve) => socket.on('close', resolve))
  socket.on('message', (data) => messages.push(JSON.parse(String(data))))
  await within(once(socket, 'open'), `a socket to ${url} opens`)
  socket.on('error', () => undefined)
  return {
    socket,
    closed,
    messages: messages as SocketClient['messages'],
    send: (message) => socket.send(typeof message === 'string' ? message : JSON.stringify(message)),
    seqs: (workspaceId) =>
      (messages as SocketClient['messages']).flatMap(({ type, workspace, seq }) =>
        type === 'events' && workspace === workspaceId ? [seq] : [],
      ),
  }
}

/** Options for a socket with this bearer token. */
export const bearerOptions = (token: string): ClientOptions => ({ headers: { authorization: `Bearer ${token}` } })
