/**
 * `molecule up`: runs the platform in this process. It loads settings, data folder, token and parts in this order; each
 * failure says what to do. The first signal drains the running turns, the second stops them. No process is left behind.
 */
import { join } from 'node:path'
import type { BackendRegistry } from '../../backends/backends.ts'
import { loadConfig, type PlatformConfig } from '../../config/config.ts'
import { MoleculeError } from '../../errors.ts'
import type { Checkpoint } from '../../inbox/worker.ts'
import { createLog, type Log, type MaskingLog } from '../../log.ts'
import { bootId, startTimeOf } from '../../process/identity.ts'
import { type AdminToken, ensureAdminToken } from '../data-folder/admin-token.ts'
import { type DataFolder, openDataFolder } from '../data-folder/data-folder.ts'
import { type SettledFolder, settleFolder, standingText } from '../data-folder/folder-standing.ts'
import { openLogFile } from '../data-folder/log-file.ts'
import { LOG_FILE } from '../data-folder/log-format.ts'
import { findPortHolder } from '../platform/port-holder.ts'
import { namingOwnCommand, ownCommand } from '../terminal/own-command.ts'
import { closeNow, cutOffText, drainText, ignoreClosedOutput, listenForStopSignals } from '../terminal/stop-signals.ts'
import type { Environment, Terminal } from '../terminal/terminal.ts'
import type { Platform, WireOptions } from '../wire.ts'
import { exposureWarning } from './exposure.ts'

export interface UpOptions {
  /** As typed, by long name. */
  readonly flags: Readonly<Record<string, string | undefined>>
  readonly verbose: boolean
  readonly terminal: Terminal
  /** Runs before the platform takes any work; the start fails when it rejects. Its text is printed after that of the start. */
  readonly beforeWork?: (access: StartedPlatform) => Promise<string>
  /** Runs beside the platform, from when it is up until the signal of a stop aborts. A failure is logged. */
  readonly whileRunning?: (access: StartedPlatform, signal: AbortSignal) => Promise<void>
}

/** A platform that answers over HTTP and takes no work yet. */
export interface StartedPlatform {
  readonly url: string
  /** The admin token. */
  readonly token: string
  readonly backends: BackendRegistry
  readonly log: Log
}

/** Resolves when a signal has stopped the platform. */
export async function up({ flags, verbose, terminal, beforeWork, whileRunning }: UpOptions): Promise<void> {
  const config = await loadConfig({ flags, env: terminal.env })
  const folder = openDataFolder(config.dataDir)
  // A program that reads JSON from stderr gets the lines as they are.
  const shown = terminal.interactive
    ? namingOwnCommand(terminal, ownCommand(terminal.env, { dataDir: config.dataDir }))
    : terminal
  const logFile = openLogFile({ path: join(config.dataDir, LOG_FILE), terminal: shown, verbose })
  try {
    const log = createLog(config.logLevel, logFile)
    const settled = await settleFolder({ dataDir: config.dataDir, as: flags['as'], terminal })
    await run({ config, folder, settled, log, terminal, beforeWork, whileRunning })
  } finally {
    logFile.close()
    folder.release()
  }
}

async function run({
  config,
  folder,
  settled,
  log,
  terminal,
  beforeWork,
  whileRunning,
}: {
  config: PlatformConfig
  folder: DataFolder
  settled: SettledFolder
  log: MaskingLog
  terminal: Terminal
  beforeWork: UpOptions['beforeWork']
  whileRunning: UpOptions['whileRunning']
}): Promise<void> {
  if (folder.mended.length > 0)
    log.warn(
      { paths: folder.mended },
      'other users of this machine could use these files until now; their modes are corrected. If others use this machine, remove the file admin-token and restart',
    )
  const exposure = exposureWarning(config)
  if (exposure !== undefined) log.warn({ host: config.host }, exposure)
  const standing = standingText(settled, { isShared: config.database !== undefined })
  if (standing !== undefined) log.warn({ dataDir: config.dataDir }, standing)
  const adminToken = ensureAdminToken(config.dataDir, terminal.env['MOLECULE_ADMIN_TOKEN'], log)
  log.hide(adminToken.token)
  const logCrash = (err: Error) => log.error({ err }, 'the platform crashes because of a defect')
  process.on('uncaughtExceptionMonitor', logCrash)
  const restoreOutput = ignoreClosedOutput()
  const stop = listenForStopSignals(terminal.env)
  try {
    const environment = terminal.env
    let prepared = ''
    let started: StartedPlatform | undefined
    const options: WireOptions = {
      config,
      adminToken: adminToken.token,
      folder: settled,
      log,
      environment,
      async beforeWork(access) {
        started = { ...access, token: adminToken.token, log }
        prepared = (await beforeWork?.(started)) ?? ''
      },
      ...crashPoint(environment),
    }
    const platform = await startPlatform(options)
    const identity = { startTime: (await startTimeOf(process.pid)) ?? '', bootId: await bootId() }
    folder.announce({ pid: process.pid, url: platform.url, startedAt: new Date().toISOString(), ...identity })
    terminal.out(startText(platform, adminToken, { config, env: environment, isPrepared: prepared !== '' }) + prepared)
    log.info(
      { url: platform.url, grpcPort: platform.grpcPort, pid: process.pid, dataDir: config.dataDir },
      'the platform is up',
    )
    const stopping = new AbortController()
    if (started !== undefined)
      whileRunning?.(started, stopping.signal).catch((err: unknown) =>
        log.warn({ err }, 'a part of the command failed'),
      )
    const signal = await stop.first
    stopping.abort()
    log.info({ signal, drainMs: config.drainMs }, 'the platform is stopping')
    const announce = async () =>
      terminal.err(`Stopping: ${drainText(await platform.runningTurns(), config.drainMs)}.\n`)
    let isStoppingNow = false
    const stopNow = () => {
      isStoppingNow = true
      terminal.err('Stopping now: messages with unfinished turns will run again at the next start.\n')
      return closeNow(() => platform.close(0))
    }
    const drain = async () => {
      const cutOff = await platform.close(config.drainMs)
      if (cutOff.length > 0 && !isStoppingNow) terminal.err(cutOffText(cutOff))
    }
    const drained = Promise.all([announce(), drain()])
    await Promise.race([drained, stop.second.then(stopNow)])
  } finally {
    stop.stopListening()
    restoreOutput()
    process.off('uncaughtExceptionMonitor', logCrash)
  }
}

async function startPlatform(options: WireOptions): Promise<Platform> {
  const { wire } = await import('../wire.ts')
  try {
    return await wire(options)
  } catch (thrown) {
    if (thrown instanceof MoleculeError && thrown.code === 'in_use' && thrown.details['port'] !== undefined)
      throw portTakenError(thrown)
    throw thrown
  }
}

/** Names the process that holds the port, where the system shows it. */
function portTakenError(cause: MoleculeError): MoleculeError {
  const { host, flag } = cause.details
  const port = Number(cause.details['port'])
  const holder = findPortHolder(port)
  const by = holder ? ` by process ${holder.pid} (${holder.command})` : ''
  const message = `port ${port} on ${host} is taken${by}. Stop it, or choose another port: "molecule up ${flag} ${port + 1}"`
  return new MoleculeError('in_use', message, { cause, details: { port, ...holder } })
}

function startText(
  platform: Platform,
  adminToken: AdminToken,
  {
    config,
    env,
    isPrepared,
  }: { readonly config: PlatformConfig; readonly env: Environment; readonly isPrepared: boolean },
): string {
  const { url, publicUrl, grpcPort, loginUrl, orphansReaped } = platform
  const command = ownCommand(env, { dataDir: config.dataDir })
  const lines = [
    `Molecule runs at ${url}`,
    ...(publicUrl === undefined ? [] : [`  public URL   ${publicUrl}`]),
    `  log in       ${loginUrl}   (once, within 10 minutes)`,
    `  admin token  ${adminToken.path}`,
    `  log          ${join(config.dataDir, LOG_FILE)}`,
    '',
    'In another terminal:',
    // A gateway has made its workspace.
    ...(isPrepared ? [] : [`  ${command} init   makes a first workspace`]),
    `  ${command} open   logs a browser in, at any time`,
    '',
  ]
  if (grpcPort !== undefined) lines.splice(1, 0, `  gRPC         ${new URL(url).hostname}:${grpcPort}`)
  if (orphansReaped > 0) lines.splice(1, 0, `  cleaned up   ${orphansReaped} process(es) left by an earlier crash`)
  return `${lines.join('\n')}\n`
}

/**
 * For crash tests: `MOLECULE_CRASH_AT=<checkpoint>[:<n>]` makes the platform send itself SIGKILL when it passes the
 * checkpoint for the n-th time.
 */
function crashPoint(env: Environment): { onCheckpoint?: (checkpoint: Checkpoint) => void } {
  const [point, nth = '1'] = (env['MOLECULE_CRASH_AT'] ?? '').split(':')
  if (!point) return {}
  let left = Number(nth)
  return {
    onCheckpoint(checkpoint) {
      if (checkpoint !== point) return
      left -= 1
      if (left === 0) process.kill(process.pid, 'SIGKILL')
    },
  }
}
