/**
 * Limits the connections of one remote address to a door. Prevents that one machine without a token takes all memory and
 * file handles with connections that it opens and does not use.
 */
import type { Server, Socket } from 'node:net'

/** One more connection of the address is refused. The agents, bridges and pages of one machine share an address. */
const CONNECTIONS_PER_ADDRESS_MAX = 2048

/** Counts the connections of `server`. `refuse` gets the one past the limit and must end it. */
export function limitConnections(
  server: Server,
  refuse: (socket: Socket) => void,
  connectionsMax = CONNECTIONS_PER_ADDRESS_MAX,
): void {
  const open = new Map<string, number>()
  server.prependListener('connection', (socket: Socket) => {
    const address = socket.remoteAddress ?? ''
    const own = open.get(address) ?? 0
    if (own >= connectionsMax) return refuse(socket)
    open.set(address, own + 1)
    socket.once('close', () => {
      const left = (open.get(address) ?? 1) - 1
      if (left > 0) open.set(address, left)
      else open.delete(address)
    })
  })
}
