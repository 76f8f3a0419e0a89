/**
 * A campaign against one engine: one platform process after another on the same data folder under load. Each is killed
 * with `kill -9` at a random moment, some while they start. After every start no process of an earlier platform may be
 * alive. The last platform finishes its work; then the audit runs.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { markedProcesses } from '../harness/live-processes.ts'
import { recordedCgroups, removeCgroups } from '../harness/measures/cgroup.ts'
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
  /** Kills that hit a platform while it was starting. */
  readonly killsWhileStarting: number
  readonly messagesSentAgain: number
  readonly orphans: number
}

/** A platform is killed within this time after it was ready. */
const UPTIME_MS_MAX = 700
const FIRST_STARTS_KILLED = 2
/** An estimate for the first start. Later starts are measured. */
const FIRST_START_MS = 500
/** One in this many kills hits a platform that is starting. */
const STARTING_ONE_IN = 6
/**
 * A message that loses its worker five times becomes a dead letter, by design. So after this many kills the platform
 * runs until it has answered the messages that were open. On a busy machine some message would otherwise be hit every
 * time.
 */
const KILLS_IN_A_ROW = 4
/**
 * No answer may take longer. This is less than a lease: leases of a dead process are void when the next one starts, and
 * a platform that waits for them to run out fails here.
 */
const ANSWER_MS_MAX = 25_000
/** A child process that was starting when its platform died shows its mark only after this time. */
const EXEC_MS = 20
const POLL_MS = 10

interface Campaign extends CampaignOptions {
  readonly dataDir: string
  readonly target: PlatformAddress
  /** The marks of all processes that were alive when a platform was killed. */
  readonly deadMarks: Set<string>
  readonly orphans: Set<string>
  readonly problems: string[]
  /** Since the platform last ran until all open messages were answered. */
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
    problems: [],
    kills: 0,
    killsWhileStarting: 0,
    startMs: FIRST_START_MS,
  }
  let platform: PlatformProcess | undefined
  try {
    // The first platforms create the folder, its secrets and the tables, and are killed meanwhile.
    for (let n = 0; n < FIRST_STARTS_KILLED; n++) await killWhileStarting(campaign)
    platform = await startReady(campaign)
    campaign.kills = 0
    campaign.target.token = readToken(dataDir)
    const reportProblem = (problem: string) => void campaign.problems.push(problem)
    const load = await startClientLoad({ target: campaign.target, random: options.random, runsDir, reportProblem })
    for (let round = 1; round <= options.rounds; round++) {
      if (campaign.kills >= KILLS_IN_A_ROW) await waitForOpenAnswers(campaign, load)
      platform = await killAndRestart(campaign, platform)
      options.progress(round)
    }
    return await conclude(campaign, { platform, load, runsDir })
  } finally {
    await platform?.stop('SIGKILL')
    await removeCgroups(recordedCgroups(dataDir))
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Starts a platform, points the load at it, and records processes of earlier platforms that are still alive. */
async function startReady(campaign: Campaign): Promise<PlatformProcess> {
  const { dataDir, database, target } = campaign
  const beginMs = performance.now()
  const platform = startPlatformProcess({ dataDir, database })
  target.url = await platform.ready.catch(async (error) => {
    await platform.stop('SIGKILL')
    throw error
  })
  campaign.startMs = performance.now() - beginMs
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
  if (stuck.length > 0) campaign.problems.push(`no answer within ${ANSWER_MS_MAX} ms: ${stuck.join(', ')}`)
  campaign.kills = 0
}

const isOpen = ({ end }: SentMessage): boolean => end === undefined

async function killAndRestart(campaign: Campaign, platform: PlatformProcess): Promise<PlatformProcess> {
  const { random } = campaign
  await delay(random.number(UPTIME_MS_MAX))
  await killPlatform(campaign, platform)
  const killsStart = campaign.kills < KILLS_IN_A_ROW && random.whole(STARTING_ONE_IN) === 0
  if (killsStart) await killWhileStarting(campaign)
  return await startReady(campaign)
}

/** Kills a platform during its start: it may be migrating, reaping orphans or recovering leases. */
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
  // It may have been killed before it wrote its host id.
  if (!existsSync(join(dataDir, 'host-id'))) return
  for (const wait of [0, EXEC_MS]) {
    await delay(wait)
    for (const { mark } of markedProcesses(`${readHostId(dataDir)}:`)) deadMarks.add(mark)
  }
}

async function conclude(
  campaign: Campaign,
  { platform, load, runsDir }: { platform: PlatformProcess; load: ClientLoad; runsDir: string },
): Promise<CrashReport> {
  const { dataDir, database, problems, orphans } = campaign
  const drained = await load.finish(ANSWER_MS_MAX)
  if (!drained) problems.push(`some messages had no answer ${ANSWER_MS_MAX} ms after the last kill`)
  const code = await platform.stop()
  if (code !== 0) problems.push(`the last platform ended with ${code}: ${platform.output()}`)
  const left = markedProcesses(`${readHostId(dataDir)}:`).map(
    ({ pid, commandLine }) => `${commandLine} (${pid}) is alive after the end`,
  )
  const stored = await openDatabase({ dataDir, database })
  try {
    const audited = await audit(stored, load.sent, runsDir)
    const checks: AuditCheck[] = [
      ...audited.checks,
      { title: 'RE-5 no process outlives a restart or the end', violations: [...orphans, ...left] },
      { title: 'RE-1 every client is answered, and none gets an unexpected answer', violations: problems },
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
