/** A platform with a probe in its process: how long one request held its event loop. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type PlatformUnderTest, startPlatform } from '../platform.ts'

const PROBE = fileURLToPath(new URL('./loop-probe.mjs', import.meta.url))

export interface LoopHold {
  readonly ms: number
  /** CPU time of the thread, without the time in which it waited for a disk or for a processor. */
  readonly cpuMs: number
}

export interface ProbedPlatform extends PlatformUnderTest {
  /** The longest holds of the event loop since the last call. */
  takeHold(): Promise<LoopHold>
}

export async function startProbedPlatform(dataDir: string, args: readonly string[] = []): Promise<ProbedPlatform> {
  const portFile = join(dataDir, 'loop-port')
  const env = { NODE_OPTIONS: `--import=${PROBE}`, LOOP_PROBE: portFile }
  const platform = await startPlatform({ dataDir, env, args })
  const port = Number(readFileSync(portFile, 'utf8'))
  return {
    ...platform,
    async takeHold() {
      const socket = createConnection(port, '127.0.0.1')
      let text = ''
      socket.setEncoding('utf8').on('data', (chunk) => {
        text += chunk
      })
      await once(socket, 'close')
      return JSON.parse(text) as LoopHold
    },
  }
}
