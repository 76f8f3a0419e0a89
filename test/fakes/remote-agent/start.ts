/** Starts the fake remote agent in its own process. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Message } from '../../../src/protocol/a2a.ts'

const AGENT = fileURLToPath(new URL('./agent.ts', import.meta.url))

export interface SeenRequests {
  readonly sends: readonly Message[]
  readonly cancels: readonly string[]
  readonly authorization: readonly (string | null)[]
}

export interface RemoteAgent {
  readonly url: string
  /** What the agent has received so far. */
  seen(): Promise<SeenRequests>
  /** Ends its slow tasks. */
  release(): Promise<void>
  stop(): void
}

export async function startRemoteAgent(version: '1.0' | '0.3' | 'rest'): Promise<RemoteAgent> {
  const child = spawn(process.execPath, [AGENT, version], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [url] = (await once(createInterface(child.stdout), 'line')) as [string]
  return {
    url,
    seen: async () => (await fetch(`${url}/seen`)).json() as Promise<SeenRequests>,
    release: async () => void (await fetch(`${url}/release`, { method: 'POST' })),
    stop: () => void child.kill('SIGKILL'),
  }
}
