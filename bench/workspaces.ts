/**
 * `GET /workspaces` with many workspaces: the time of one page of 1,000, against a bare `node:http` server that writes the
 * same list as JSON, in alternating rounds. Then the memory that a workspace costs the platform: its part of the heap after
 * a collection of garbage, once after the workspaces were created and once after a restart. The resident memory also grows
 * by garbage and compiled code of the creating requests, whatever they create, and is printed beside it.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { startPlatform } from '../test/harness/platform.ts'
import { alternate, median } from './measure.ts'
import { startPeer } from './peers/start-peer.ts'

const WORKSPACES = Number(process.argv[2] ?? 2000)
const PAGE = 1000
const ROUNDS = 20
const US_EACH_MAX = 50
const KB_EACH_MAX = 10
const CREATED_AT_ONCE = 8
const PROBE = fileURLToPath(new URL('./peers/heap-probe.mjs', import.meta.url))

const residentBytes = (pid: number): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024

const folder = mkdtempSync(join(tmpdir(), 'molecule-bench-'))
const socketPath = join(folder, 'heap.sock')
const env = { NODE_OPTIONS: `--expose-gc --import=${PROBE}`, HEAP_PROBE: socketPath }
const start = () => startPlatform({ dataDir: join(folder, 'data'), env })
const heapBytes = async () => Number(await text(createConnection(socketPath)))
const kbEach = (bytes: number) => bytes / WORKSPACES / 1024

let platform = await start()
const peer = await startPeer(new URL('./peers/broadcast-server.ts', import.meta.url))
try {
  const empty = { heap: await heapBytes(), resident: residentBytes(platform.pid) }
  const names = Array.from({ length: WORKSPACES }, (_, index) => `agent ${index}`)
  const create = async () => {
    for (let name = names.pop(); name !== undefined; name = names.pop()) {
      const { status } = await platform.request('POST', '/workspaces', { name, role: 'a role', runtime: 'mock' })
      if (status !== 201) throw new Error(`a workspace was refused with ${status}`)
    }
  }
  await Promise.all(Array.from({ length: CREATED_AT_ONCE }, create))
  const grownResident = kbEach(residentBytes(platform.pid) - empty.resident)
  const grownHeap = kbEach((await heapBytes()) - empty.heap)

  const headers = { Authorization: `Bearer ${platform.token}` }
  const read = async (url: string): Promise<string> => (await fetch(url, { headers })).text()
  const page = `${platform.url}/workspaces?limit=${PAGE}`
  const listed = JSON.parse(await read(page)).workspaces.length
  if (listed !== Math.min(PAGE, WORKSPACES)) throw new Error(`the page has ${listed} workspaces`)
  await fetch(`http://127.0.0.1:${peer.port}/list`, { method: 'PUT', body: await read(page) })
  const contenders = { molecule: () => read(page), bare: () => read(`http://127.0.0.1:${peer.port}/list`) }
  await alternate({ rounds: 5, contenders })
  const times = await alternate({ rounds: ROUNDS, contenders })
  const [molecule, bare] = [median(times['molecule'] ?? []), median(times['bare'] ?? [])]
  const usEach = (molecule * 1000) / listed
  console.log(`molecule        ${molecule.toFixed(1)} ms for ${listed} of ${WORKSPACES} workspaces`)
  console.log(`bare node:http  ${bare.toFixed(1)} ms for the same answer, ratio ${(molecule / bare).toFixed(1)}`)
  console.log(`each            ${usEach.toFixed(1)} us (at most ${US_EACH_MAX})`)
  await platform.stop()
  platform = await start()
  const restarted = kbEach((await heapBytes()) - empty.heap)
  console.log(
    `memory          ${grownHeap.toFixed(1)} KB of heap each after they were created (at most ${KB_EACH_MAX})`,
  )
  console.log(
    `                ${restarted.toFixed(1)} KB after a restart; ${grownResident.toFixed(1)} KB resident before it`,
  )
  process.exitCode = usEach <= US_EACH_MAX && Math.max(grownHeap, restarted) <= KB_EACH_MAX ? 0 : 1
} finally {
  peer.stop()
  await platform.dispose()
  rmSync(folder, { recursive: true, force: true })
}
