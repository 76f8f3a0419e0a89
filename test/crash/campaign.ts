/**
 * A campaign against one engine: life after life of a platform on one data folder under one load, each ended by
 * `kill -9` at a random moment, some before they were even ready. The last life may finish its work; then comes the
 * audit. After every start nothing may be alive that an earlier life had started.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Audit, audit, type Check } from './audit.ts'
import { openDatabase } from './database.ts'
import { beginLife, type Life, readHostId, readToken } from './life.ts'
import { type Load, type Sent, startLoad, type Target } from './load.ts'
import { findMarked } from './marks.ts'
import type { Random } from './random.ts'

export interface CampaignOptions {
  /** `postgres://...`; unset = the embedded store. */
  readonly database?: string | undefined
  readonly rounds: number
  readonly random: Random
  readonly progress: (round: number) => void
}

export interface Report extends Audit {
  readonly kills: number
  /** How many of the kills hit a platform that was still starting. */
  readonly killsWhileStarting: number
  readonly messagesSentAgain: number
  readonly orphans: number
}

/** A life is killed within this time after it was ready. */
const LIFE_MS_MAX = 700
const FIRST_LIVES_KILLED = 2
/** About what a start takes, as long as none was seen. */
const FIRST_START_MS = 500
/** One kill in so many hits a platform that is still starting. */
const STARTING_ONE_IN = 6
/**
 * A message that is cut off five times is a dead letter, by design. So after so many kills one life is left alone until
 * it has answered what was open when it began; on a busy machine some message would be hit every time otherwise.
 */
const KILLS_IN_A_ROW = 4
/**
 * No answer may take so long: it is less than a lease, and the leases of a dead process are void as soon as the next one
 * starts. Somebody who waited for one to run out would be seen here.
 */
const ANSWER_MS_MAX = 25_000
/** A child that was being started when its platform died shows its mark only after this. */
const EXEC_MS = 20
const LOOK_MS = 10

/** What a campaign has seen so far. */
interface Campaign extends CampaignOptions {
  readonly dataDir: string
  readonly target: Target
  /** The marks of everything that lived when some life ended. */
  readonly deadMarks: Set<string>
  readonly orphans: Set<string>
  readonly complaints: string[]
  /** Since the last breath. */
  kills: number
  killsWhileStarting: number
  startMs: number
}

export async function runCampaign(options: CampaignOptions): Promise<Report> {
  const folder = mkdtempSync(join(tmpdir(), 'molecule-crash-'))
  const dataDir = join(folder, 'data')
  const runsDir = join(folder, 'runs')
  mkdirSync(runsDir)
  const campaign: Campaign = {
    ...options,
    dataDir,
    target: { url: undefined, token: '' },
    deadMarks: new Set(),
    orphans: new Set(),
    complaints: [],
    kills: 0,
    killsWhileStarting: 0,
    startMs: FIRST_START_MS,
  }
  let life: Life | undefined
  try {
    // The very first lives make the folder, its secrets and the tables, and die of it.
    for (let n = 0; n < FIRST_LIVES_KILLED; n++) await killWhileStarting(campaign)
    life = await live(campaign)
    campaign.kills = 0
    campaign.target.token = readToken(dataDir)
    const complain = (problem: string) => void campaign.complaints.push(problem)
    const load = await startLoad({ target: campaign.target, random: options.random, runsDir, complain })
    for (let round = 1; round <= options.rounds; round++) {
      if (campaign.kills >= KILLS_IN_A_ROW) await breathe(campaign, load)
      life = await killAndRestart(campaign, life)
      options.progress(round)
    }
    return await conclude(campaign, { life, load, runsDir })
  } finally {
    await life?.kill()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A life that gets ready; the load finds it, and nothing of an earlier life may be there any more. */
async function live(campaign: Campaign): Promise<Life> {
  const { dataDir, database, target } = campaign
  const begunMs = performance.now()
  const life = beginLife({ dataDir, database })
  target.url = await life.ready.catch(async (error) => {
    await life.kill()
    throw error
  })
  campaign.startMs = performance.now() - begunMs
  for (const { pid, mark, command } of findMarked(readHostId(dataDir))) {
    if (campaign.deadMarks.has(mark)) campaign.orphans.add(`${command} (${pid}) of ${mark} outlived a restart`)
  }
  return life
}

async function breathe(campaign: Campaign, { sent }: Load): Promise<void> {
  const open = sent.filter(isOpen)
  const deadlineMs = performance.now() + ANSWER_MS_MAX
  while (open.some(isOpen) && performance.now() < deadlineMs) await delay(LOOK_MS)
  const stuck = open.filter(isOpen).map(({ messageId }) => messageId)
  if (stuck.length > 0) campaign.complaints.push(`no answer within ${ANSWER_MS_MAX} ms: ${stuck.join(', ')}`)
  campaign.kills = 0
}

const isOpen = ({ end: outcome }: Sent): boolean => outcome === undefined

async function killAndRestart(campaign: Campaign, life: Life): Promise<Life> {
  const { random } = campaign
  await delay(random.number(LIFE_MS_MAX))
  await end(campaign, life)
  const goesOn = campaign.kills >= KILLS_IN_A_ROW || random.whole(STARTING_ONE_IN) > 0
  if (!goesOn) await killWhileStarting(campaign)
  return await live(campaign)
}

/** A life that does not get far; it may be in the middle of its migrations, its reaping, its recovery. */
async function killWhileStarting(campaign: Campaign): Promise<void> {
  const starting = beginLife(campaign)
  campaign.killsWhileStarting += 1
  await delay(campaign.random.number(campaign.startMs))
  await end(campaign, starting)
}

async function end(campaign: Campaign, life: Life): Promise<void> {
  const { target, dataDir, deadMarks } = campaign
  target.url = undefined
  await life.kill()
  campaign.kills += 1
  // It may have died before it had a name.
  if (!existsSync(join(dataDir, 'host-id'))) return
  for (const wait of [0, EXEC_MS]) {
    await delay(wait)
    for (const { mark } of findMarked(readHostId(dataDir))) deadMarks.add(mark)
  }
}

interface Ending {
  readonly life: Life
  readonly load: Load
  readonly runsDir: string
}

async function conclude(campaign: Campaign, { life, load, runsDir }: Ending): Promise<Report> {
  const { dataDir, database, complaints, orphans } = campaign
  const drained = await load.finish(ANSWER_MS_MAX)
  if (!drained) complaints.push(`some messages had no answer ${ANSWER_MS_MAX} ms after the last kill`)
  const code = await life.stop()
  if (code !== 0) complaints.push(`the last life ended with ${code}: ${life.output()}`)
  const left = findMarked(readHostId(dataDir)).map(({ pid, command }) => `${command} (${pid}) is alive after the end`)
  const stored = await openDatabase({ dataDir, database })
  try {
    const audited = await audit(stored, load.sent, runsDir)
    const checks: Check[] = [
      ...audited.checks,
      { title: 'RE-5 no process outlives a restart or the end', violations: [...orphans, ...left] },
      { title: 'RE-1 every client is served, with no answer it should not get', violations: complaints },
    ]
    const { killsWhileStarting } = campaign
    return {
      ...audited,
      checks,
      kills: campaign.rounds + killsWhileStarting,
      killsWhileStarting,
      messagesSentAgain: load.sent.filter(isSentAgain).length,
      orphans: orphans.size + left.length,
    }
  } finally {
    await stored.close()
  }
}

const isSentAgain = ({ sends }: Sent): boolean => sends > 1
