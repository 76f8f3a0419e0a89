/**
 * One event to 1,000 followers of one workspace, against a bare `node:http` broadcast: the time from the request that
 * causes the event until the last follower has it. Each server runs in its own process, in alternating rounds, and three
 * pairs of processes are measured. The platform also commits the event before it sends it.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { startPlatform } from '../test/harness/platform.ts'
import { alternate, median } from './measure.ts'
import { startPeer } from './peers/start-peer.ts'

const FOLLOWERS = 1000
const OPENED_AT_ONCE = 50
const PAIRS = 3
const ROUNDS = 15
const RATIO_MAX = 2

interface FanoutTarget {
  readonly port: number
  readonly events: string
  readonly headers: string
  /** Causes one event with this text. */
  readonly publish: (text: string) => Promise<unknown>
}

let published = 0

/** Opens the followers; each call of the result publishes one event and waits until every follower has it. */
async function openFollowers({ port, events, headers, publish }: FanoutTarget) {
  let text = 'no event yet'
  let missing = 0
  let arrived: PromiseWithResolvers<void> | undefined
  const sockets: Socket[] = []
  const open = async () => {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true })
    sockets.push(socket)
    await once(socket, 'connect')
    socket.setEncoding('latin1')
    const head = once(socket, 'data')
    socket.write(`GET ${events} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`)
    // The stream begins with the head of its answer: an event before it would not arrive.
    const [answer] = await head
    if (!String(answer).startsWith('HTTP/1.1 200')) throw new Error(`a follower was refused: ${answer}`)
    let received = ''
    socket.on('data', (chunk: string) => {
      received += chunk
      if (!received.includes(text)) return
      received = ''
      if (--missing === 0) arrived?.resolve()
    })
  }
  for (let follower = 0; follower < FOLLOWERS; follower += OPENED_AT_ONCE) {
    await Promise.all(Array.from({ length: OPENED_AT_ONCE }, open))
  }
  const send = async () => {
    text = `event-${++published}-of-the-bench`
    missing = FOLLOWERS
    arrived = Promise.withResolvers<void>()
    await Promise.all([publish(text), arrived.promise])
  }
  const close = () => {
    for (const socket of sockets) socket.destroy()
  }
  return { send, close }
}

async function measurePair(): Promise<Record<string, number[]>> {
  const platform = await startPlatform()
  const peer = await startPeer(new URL('./peers/broadcast-server.ts', import.meta.url))
  try {
    const { body } = await platform.request('POST', '/workspaces', { name: 'bench', runtime: 'mock' })
    const molecule = await openFollowers({
      port: Number(new URL(platform.url).port),
      events: `/workspaces/${body.id}/events`,
      headers: `Authorization: Bearer ${platform.token}\r\n`,
      publish: (text) => platform.request('POST', `/workspaces/${body.id}/activity`, { type: 'bench', text }),
    })
    const bare = await openFollowers({
      port: peer.port,
      events: '/events',
      headers: '',
      publish: (text) => fetch(`http://127.0.0.1:${peer.port}/`, { method: 'POST', body: JSON.stringify({ text }) }),
    })
    const contenders = { molecule: molecule.send, bare: bare.send }
    await alternate({ rounds: 3, contenders, pauseMs: 50 })
    const times = await alternate({ rounds: ROUNDS, contenders, pauseMs: 50 })
    molecule.close()
    bare.close()
    return times
  } finally {
    peer.stop()
    await platform.dispose()
  }
}

const pairs: Record<string, number[]>[] = []
for (let pair = 0; pair < PAIRS; pair++) pairs.push(await measurePair())
const timesOf = (name: string) => pairs.flatMap((times) => times[name] ?? [])
const [molecule, bare] = [timesOf('molecule'), timesOf('bare')]
const ratio = median(molecule.map((ms, round) => ms / (bare[round] ?? Number.NaN)))
console.log(`molecule, durable  ${median(molecule).toFixed(1)} ms for ${FOLLOWERS} followers`)
console.log(`bare node:http     ${median(bare).toFixed(1)} ms`)
console.log(`ratio              ${ratio.toFixed(2)} (at most ${RATIO_MAX})`)
process.exitCode = ratio <= RATIO_MAX ? 0 : 1
