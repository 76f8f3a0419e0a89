/**
 * A campaign against one engine: one platform process after another on one data folder under one load, each ended by
 * `kill -9` at a random moment, some before they were even ready. The last platform may finish its work; then comes the
 * audit. After every start nothing may be alive that an earlier platform had started.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { markedProcesses } from '../harness/live-processes.ts'
import { type PlatformProcess, readHostId, readToken, startPlatformProcess } from '../harness/platform-process.ts'
import { type Audit, type AuditCheck, audit } from './audit.ts'
import { type ClientLoad, type PlatformAddress, type SentMessage, startClientLoad } from './client-load.ts'
import { openDatabase } from './database.ts'
import type { Random } from './random.ts'

export interface CampaignOptions {
  /** `postgres://...`; unset = the embedded store. */
  readonly database?: string | undefined
  readonly rounds: number
  readonly random: Random
  readonly progress: (round: number) => void
}

export interface CrashReport extends Audit {
  readonly kills: number
  /** How many of the kills hit a platform that was still starting. */
  readonly killsWhileStarting: number
  readonly messagesSentAgain: number
  readonly orphans: number
}

/** A platform is killed within this time after it was ready. */
const UPTIME_MS_MAX = 700
const FIRST_STARTS_KILLED = 2
/** About what a start takes, as long as none was seen. */
const FIRST_START_MS = 500
/** One kill in so many hits a platform that is still starting. */
const STARTING_ONE_IN = 6
/**
 * A message that is cut off five times is a dead letter, by design. So after so many kills one platform is left alone until
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
const POLL_MS = 10

/** What a campaign has seen so far. */
interface Campaign extends CampaignOptions {
  readonly dataDir: string
  readonly target: PlatformAddress
  /** The marks of everything that lived when some platform ended. */
  readonly deadMarks: Set<string>
  readonly orphans: Set<string>
  readonly complaints: string[]
  /** Since the last breath. */
  kills: number
  killsWhileStarting: number
  startMs: number
}

export async function runCampaign(options: CampaignOptions): Promise<CrashReport> {
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
  let platform: PlatformProcess | undefined
  try {
    // The very first lives make the folder, its secrets and the tables, and die of it.
    for (let n = 0; n < FIRST_STARTS_KILLED; n++) await killWhileStarting(campaign)
    platform = await startReady(campaign)
    campaign.kills = 0
    campaign.target.token = readToken(dataDir)
    const complain = (problem: string) => void campaign.complaints.push(problem)
    const load = await startClientLoad({ target: campaign.target, random: options.random, runsDir, complain })
    for (let round = 1; round <= options.rounds; round++) {
      if (campaign.kills >= KILLS_IN_A_ROW) await waitForOpenAnswers(campaign, load)
      platform = await killAndRestart(campaign, platform)
      options.progress(round)
    }
    return await conclude(campaign, { platform, load, runsDir })
  } finally {
    await platform?.stop('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A platform that gets ready; the load finds it, and nothing of an earlier platform may be there any more. */
async function startReady(campaign: Campaign): Promise<PlatformProcess> {
  const { dataDir, database, target } = campaign
  const begunMs = performance.now()
  const platform = startPlatformProcess({ dataDir, database })
  target.url = await platform.ready.catch(async (error) => {
    await platform.stop('SIGKILL')
    throw error
  })
  campaign.startMs = performance.now() - begunMs
  for (const { pid, mark, commandLine } of markedProcesses(`${readHostId(dataDir)}:`)) {
    if (campaign.deadMarks.has(mark)) campaign.orphans.add(`${commandLine} (${pid}) of ${mark} outlived a restart`)
  }
  return platform
}

async function waitForOpenAnswers(campaign: Campaign, { sent }: ClientLoad): Promise<void> {
  const open = sent.filter(isOpen)
  const deadlineMs = performance.now() + ANSWER_MS_MAX
  while (open.some(isOpen) && performance.now() < deadlineMs) await delay(POLL_MS)
  const stuck = open.filter(isOpen).map(({ messageId }) => messageId)
  if (stuck.length > 0) campaign.complaints.push(`no answer within ${ANSWER_MS_MAX} ms: ${stuck.join(', ')}`)
  campaign.kills = 0
}

const isOpen = ({ end: outcome }: SentMessage): boolean => outcome === undefined

async function killAndRestart(campaign: Campaign, platform: PlatformProcess): Promise<PlatformProcess> {
  const { random } = campaign
  await delay(random.number(UPTIME_MS_MAX))
  await killPlatform(campaign, platform)
  const goesOn = campaign.kills >= KILLS_IN_A_ROW || random.whole(STARTING_ONE_IN) > 0
  if (!goesOn) await killWhileStarting(campaign)
  return await startReady(campaign)
}

/** A platform that does not get far; it may be in the middle of its migrations, its reaping, its recovery. */
async function killWhileStarting(campaign: Campaign): Promise<void> {
  const starting = startPlatformProcess(campaign)
  campaign.killsWhileStarting += 1
  await delay(campaign.random.number(campaign.startMs))
  await killPlatform(campaign, starting)
}

async function killPlatform(campaign: Campaign, platform: PlatformProcess): Promise<void> {
  const { target, dataDir, deadMarks } = campaign
  target.url = undefined
  await platform.stop('SIGKILL')
  campaign.kills += 1
  // It may have died before it had a name.
  if (!existsSync(join(dataDir, 'host-id'))) return
  for (const wait of [0, EXEC_MS]) {
    await delay(wait)
    for (const { mark } of markedProcesses(`${readHostId(dataDir)}:`)) deadMarks.add(mark)
  }
}

interface Ending {
  readonly platform: PlatformProcess
  readonly load: ClientLoad
  readonly runsDir: string
}

async function conclude(campaign: Campaign, { platform, load, runsDir }: Ending): Promise<CrashReport> {
  const { dataDir, database, complaints, orphans } = campaign
  const drained = await load.finish(ANSWER_MS_MAX)
  if (!drained) complaints.push(`some messages had no answer ${ANSWER_MS_MAX} ms after the last kill`)
  const code = await platform.stop()
  if (code !== 0) complaints.push(`the last platform ended with ${code}: ${platform.output()}`)
  const left = markedProcesses(`${readHostId(dataDir)}:`).map(
    ({ pid, commandLine }) => `${commandLine} (${pid}) is alive after the end`,
  )
  const stored = await openDatabase({ dataDir, database })
  try {
    const audited = await audit(stored, load.sent, runsDir)
    const checks: AuditCheck[] = [
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

const isSentAgain = ({ sends }: SentMessage): boolean => sends > 1
