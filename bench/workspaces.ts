/**
 * `GET /workspaces` with many workspaces: the time of one page of 1,000, against a bare `node:http` server that writes the
 * same list as JSON, in alternating rounds. Then the memory that a workspace costs the platform.
 */
import { readFileSync } from 'node:fs'
import { startPlatform } from '../test/harness/platform.ts'
import { alternate, median } from './measure.ts'
import { startPeer } from './peers/start-peer.ts'

const WORKSPACES = Number(process.argv[2] ?? 2000)
const PAGE = 1000
const ROUNDS = 20
const US_EACH_MAX = 50
const CREATED_AT_ONCE = 8

const residentBytes = (pid: number): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024

const platform = await startPlatform()
const peer = await startPeer(new URL('./peers/broadcast-server.ts', import.meta.url))
try {
  const before = residentBytes(platform.pid)
  const names = Array.from({ length: WORKSPACES }, (_, index) => `agent ${index}`)
  const create = async () => {
    for (let name = names.pop(); name !== undefined; name = names.pop()) {
      const { status } = await platform.request('POST', '/workspaces', { name, role: 'a role', runtime: 'mock' })
      if (status !== 201) throw new Error(`a workspace was refused with ${status}`)
    }
  }
  await Promise.all(Array.from({ length: CREATED_AT_ONCE }, create))
  const grown = residentBytes(platform.pid) - before

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
  console.log(`memory          ${(grown / WORKSPACES / 1024).toFixed(1)} KB resident each, after they were created`)
  process.exitCode = usEach <= US_EACH_MAX ? 0 : 1
} finally {
  peer.stop()
  await platform.dispose()
}
