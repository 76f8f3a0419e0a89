/**
 * Runs inside a platform under measurement (`NODE_OPTIONS=--expose-gc --import=...`): each connection to the socket whose
 * path is in HEAP_PROBE collects garbage and gets the number of bytes in use.
 */
import { rmSync } from 'node:fs'
import { createServer } from 'node:net'

const path = process.env['HEAP_PROBE']
// The processes of agents must not inherit the probe.
delete process.env['HEAP_PROBE']
delete process.env['NODE_OPTIONS']
if (path !== undefined) {
  rmSync(path, { force: true })
  const server = createServer((socket) => {
    // Twice: the first collection frees what the finalizers of others hold.
    globalThis.gc?.()
    globalThis.gc?.()
    socket.end(String(process.memoryUsage().heapUsed))
  })
  server.listen(path)
  server.unref()
}
