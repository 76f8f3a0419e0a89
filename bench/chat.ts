/**
 * What chats that wait add to another chat: the time from a message to its answer, on a platform with one bot of a chat service,
 * alone and beside a chat with a rate limit of 20 s, a chat with a download that takes 15 s, and a stranger. Each message is in a
 * chat of its own, because a chat takes 30 a minute.
 */
import { setTimeout } from 'node:timers/promises'
import type { Author } from '../src/doors/chat/channel.ts'
import { startSocketService } from '../test/fakes/socket-service.ts'
import { startPlatform } from '../test/harness/platform.ts'
import { median, percentile, timeMs } from './measure.ts'

const MESSAGES = 60
const LIMIT_MS = 20_000
const DOWNLOAD_MS = 15_000
const ADDED_MS_MAX = 100
const ADA: Author = { id: 'ada', name: 'Ada', isBot: false }
const STRANGER: Author = { id: 'eve', name: 'Eve', isBot: false }

const service = await startSocketService({ limitMs: LIMIT_MS })
const platform = await startPlatform()

async function answerMs(): Promise<number> {
  const place = service.newPlace('direct')
  return await timeMs(async () => {
    service.say({ place, author: ADA, text: 'hello' })
    while (service.written(place).length === 0) await setTimeout(1)
  })
}

async function measureAnswers(): Promise<number[]> {
  const times: number[] = []
  for (let n = 0; n < MESSAGES; n++) times.push(await answerMs())
  return times
}

/** Resolves when the three chats wait. The returned function ends the download. */
async function disturb(): Promise<() => void> {
  const endDownload = service.holdDownloads()
  const file = { name: 'large.txt', content: Buffer.from('x') }
  service.say({ place: service.newPlace('direct'), author: ADA, text: 'read this', files: [file] })
  service.failNextSend('rate_limited')
  service.say({ place: service.newPlace('direct'), author: ADA, text: 'answered late' })
  await setTimeout(500)
  service.say({ place: service.newPlace('direct'), author: STRANGER, text: 'who are you?' })
  return endDownload
}

try {
  const made = await platform.request('POST', '/workspaces', {
    name: 'bench',
    runtime: 'mock',
    max_concurrent_tasks: 4,
  })
  const channel = { kind: 'socket', token: service.token, api_url: service.apiUrl, workspace_id: made.body.id }
  await platform.request('POST', '/channels', { ...channel, allowed_people: [ADA.id] })
  while (!service.isConnected()) await setTimeout(10)
  await measureAnswers()
  const alone = await measureAnswers()
  const started = performance.now()
  const endDownload = await disturb()
  const beside = await measureAnswers()
  const tookMs = performance.now() - started
  endDownload()
  const show = (name: string, times: readonly number[]) =>
    console.log(
      `${name}  p50 ${median(times).toFixed(1)} ms, p95 ${percentile(times, 95).toFixed(1)} ms, worst ${Math.max(...times).toFixed(1)} ms`,
    )
  show('alone              ', alone)
  show('beside three others', beside)
  if (tookMs > DOWNLOAD_MS)
    throw new Error(`the measurement took ${Math.round(tookMs)} ms: the others waited no longer`)
  const addedMs = percentile(beside, 95) - percentile(alone, 95)
  console.log(`ratio                ${(median(beside) / median(alone)).toFixed(2)}`)
  console.log(`added at p95         ${addedMs.toFixed(1)} ms (under ${ADDED_MS_MAX})`)
  process.exitCode = addedMs < ADDED_MS_MAX ? 0 : 1
} finally {
  await platform.dispose()
  await service.close()
}
