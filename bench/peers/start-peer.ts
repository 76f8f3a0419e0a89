/** Starts a peer of a benchmark in its own process and waits until it has printed its port. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export interface Peer {
  readonly port: number
  stop(): void
}

export async function startPeer(file: URL): Promise<Peer> {
  const child = spawn(process.execPath, [fileURLToPath(file)], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [announced] = await once(child.stdout, 'data')
  return { port: Number(/\d+/.exec(String(announced))?.[0]), stop: () => void child.kill('SIGKILL') }
}
