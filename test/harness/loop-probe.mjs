/**
 * Runs inside a platform under test (`NODE_OPTIONS=--import=...`) and measures how long its event loop was held. A test
 * reads and resets the longest time over the socket whose path is in LOOP_PROBE.
 */
import { createServer } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'

const path = process.env['LOOP_PROBE']
// The processes of agents must not inherit the probe.
delete process.env['LOOP_PROBE']
delete process.env['NODE_OPTIONS']
if (path !== undefined) {
  const delays = monitorEventLoopDelay({ resolution: 1 })
  delays.enable()
  const server = createServer((socket) => {
    // The timer that measures a hold fires after it: wait for it, then answer.
    setTimeout(() => {
      socket.end(String(delays.max / 1e6))
      delays.reset()
    }, 5)
  })
  server.listen(path)
  server.unref()
}
