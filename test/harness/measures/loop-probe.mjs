/**
 * Runs inside a platform under test (`NODE_OPTIONS=--import=...`) and measures how long its event loop was held: in time,
 * and in CPU time of the thread, which other programs on the machine do not lengthen. A test reads and resets the longest
 * ones over a port of loopback, which it writes into the file that LOOP_PROBE names. Not a socket in the file system: its
 * path may have only 107 bytes, and a temporary folder can be longer.
 */
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'

const path = process.env['LOOP_PROBE']
// The processes of agents must not inherit the probe.
delete process.env['LOOP_PROBE']
delete process.env['NODE_OPTIONS']
if (path !== undefined) {
  const delays = monitorEventLoopDelay({ resolution: 1 })
  delays.enable()
  let cpuMs = 0
  let last = process.threadCpuUsage()
  const timer = setInterval(() => {
    const { user, system } = process.threadCpuUsage(last)
    last = process.threadCpuUsage()
    cpuMs = Math.max(cpuMs, (user + system) / 1000)
  }, 1)
  timer.unref()
  const server = createServer((socket) => {
    // The timer that measures a hold fires after it: wait for it, then answer.
    setTimeout(() => {
      socket.end(JSON.stringify({ ms: delays.max / 1e6, cpuMs }))
      delays.reset()
      cpuMs = 0
    }, 5)
  })
  server.listen(0, '127.0.0.1', () => {
    const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
    writeFileSync(path, String(port))
  })
  server.unref()
}
