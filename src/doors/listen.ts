/** Listens on the address of a door. A refusal names the flags that change the address. */
import type { Server } from 'node:net'
import { MoleculeError } from '../errors.ts'

export interface ListenOptions {
  readonly host: string
  readonly port: number
  /** The flag that sets the port. */
  readonly flag: '--port' | '--grpc-port'
}

/** Resolves once the server listens; rejects with the reason. */
export function listen(server: Server, options: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const refuse = (cause: NodeJS.ErrnoException) => reject(listenFailure(cause, options))
    server.once('error', refuse)
    server.listen(options.port, options.host, () => {
      server.off('error', refuse)
      resolve()
    })
  })
}

function listenFailure(cause: NodeJS.ErrnoException, { host, port, flag }: ListenOptions): MoleculeError {
  const details = { host, port, flag }
  if (cause.code === 'EADDRINUSE') {
    return new MoleculeError('in_use', `port ${port} on ${host} is taken; choose another with ${flag}`, {
      cause,
      details,
    })
  }
  const problem = cause.code === 'EACCES' ? 'not allowed' : (cause.code ?? cause.message)
  const message = `cannot listen on ${host} port ${port} (${problem}); choose others with --host and ${flag}`
  return new MoleculeError('bad_config', message, { cause, details })
}
