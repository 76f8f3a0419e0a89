/**
 * `molecule up`: runs the platform in this process. It loads settings, data folder, token and parts in this order; each
 * failure says what to do. The first signal drains the running turns, the second stops them. No process is left behind.
 */
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadConfig, loadDataDir, type PlatformConfig } from '../../config/config.ts'
import { formatDuration } from '../../duration.ts'
import { MoleculeError } from '../../errors.ts'
import type { Checkpoint } from '../../inbox/inbox.ts'
import { createLog, type MaskingLog } from '../../log.ts'
import { bootId, startTimeOf } from '../../process/identity.ts'
import { type AdminToken, ensureAdminToken } from '../data-folder/admin-token.ts'
import { type DataFolder, openDataFolder } from '../data-folder/data-folder.ts'
import { openLogFile } from '../data-folder/log-file.ts'
import { LOG_FILE } from '../data-folder/log-format.ts'
import { closeNow, ignoreClosedOutput, listenForStopSignals } from '../terminal/stop-signals.ts'
import type { Environment, Terminal } from '../terminal/terminal.ts'
import type { Platform, WireOptions } from '../wire.ts'
import { exposureWarning } from './exposure.ts'
import { findPortHolder } from './port-holder.ts'

export interface UpOptions {
  /** As typed, by long name. */
  readonly flags: Readonly<Record<string, string | undefined>>
  readonly verbose: boolean
  readonly terminal: Terminal
}

/** Resolves when a signal has stopped the platform. */
export async function up({ flags, verbose, terminal }: UpOptions): Promise<void> {
  const config = await loadConfig({ flags, env: terminal.env })
  const folder = openDataFolder(config.dataDir)
  const logFile = openLogFile({ path: join(config.dataDir, LOG_FILE), terminal, verbose })
  try {
    const log = createLog(config.logLevel, logFile)
    await run({ config, folder, log, terminal })
  } finally {
    logFile.close()
    folder.release()
  }
}

async function run({
  config,
  folder,
  log,
  terminal,
}: {
  config: PlatformConfig
  folder: DataFolder
  log: MaskingLog
  terminal: Terminal
}): Promise<void> {
  if (folder.mended.length > 0)
    log.warn(
      { paths: folder.mended },
      'other users of this machine could use these files until now; their modes are corrected. If others use this machine, remove the file admin-token and restart',
    )
  const exposure = exposureWarning(config.host)
  if (exposure !== undefined) log.warn({ host: config.host }, exposure)
  const adminToken = ensureAdminToken(config.dataDir, terminal.env['MOLECULE_ADMIN_TOKEN'], log)
  log.hide(adminToken.token)
  const logCrash = (err: Error) => log.error({ err }, 'the platform crashes because of a defect')
  process.on('uncaughtExceptionMonitor', logCrash)
  const restoreOutput = ignoreClosedOutput()
  const stop = listenForStopSignals()
  try {
    const environment = terminal.env
    const options = { config, adminToken: adminToken.token, log, environment, ...crashPoint(environment) }
    const platform = await startPlatform(options)
    const identity = { startTime: (await startTimeOf(process.pid)) ?? '', bootId: await bootId() }
    folder.announce({ pid: process.pid, url: platform.url, startedAt: new Date().toISOString(), ...identity })
    terminal.out(startText(platform, adminToken, { config, env: environment }))
    log.info({ url: platform.url, pid: process.pid, dataDir: config.dataDir }, 'the platform is up')
    const signal = await stop.first
    log.info({ signal, drainMs: config.drainMs }, 'the platform is stopping')
    terminal.err(
      `Stopping: running turns have ${formatDuration(config.drainMs)} to finish. Press Ctrl-C again to stop them now.\n`,
    )
    const stopNow = () => {
      terminal.err('Stopping now: messages with unfinished turns will run again at the next start.\n')
      return closeNow(() => platform.close(0))
    }
    await Promise.race([platform.close(config.drainMs), stop.second.then(stopNow)])
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
    if (thrown instanceof MoleculeError && thrown.code === 'in_use') throw portTakenError(options.config, thrown)
    throw thrown
  }
}

/** Names the process that holds the port, where the system shows it. */
function portTakenError({ host, port }: PlatformConfig, cause: MoleculeError): MoleculeError {
  const holder = findPortHolder(port)
  const by = holder ? ` by process ${holder.pid} (${holder.command})` : ''
  const message = `port ${port} on ${host} is taken${by}. Stop it, or choose another port: molecule up --port ${port + 1}`
  return new MoleculeError('in_use', message, { cause, details: { port, ...holder } })
}

function startText(
  platform: Platform,
  adminToken: AdminToken,
  { config, env }: { config: PlatformConfig; env: Environment },
): string {
  const { url, loginUrl, orphansReaped } = platform
  const lines = [
    `Molecule runs at ${url}`,
    `  log in       ${loginUrl}   (once, within 10 minutes)`,
    `  admin token  ${adminToken.path}`,
    `  log          ${join(config.dataDir, LOG_FILE)}`,
    '',
    'Create a first workspace, in another terminal:',
    `  ${ownCommand(config.dataDir, env)} init`,
    '',
  ]
  if (orphansReaped > 0) lines.splice(1, 0, `  cleaned up   ${orphansReaped} process(es) left by an earlier crash`)
  return `${lines.join('\n')}\n`
}

const MOLECULE = fileURLToPath(new URL('../../../bin/molecule', import.meta.url))

/** How to call `molecule` from the current folder; with MOLECULE_HOME when it would find another data folder. */
function ownCommand(dataDir: string, env: Environment): string {
  const found = loadDataDir({ flags: {}, env })
  const home = found === dataDir && !env['MOLECULE_HOME'] ? '' : `MOLECULE_HOME=${shellQuoted(dataDir)} `
  const path = relative('', MOLECULE)
  return home + shellQuoted(path.includes('/') ? path : `./${path}`)
}

/** Quoted for a POSIX shell, if it needs quotes. */
function shellQuoted(path: string): string {
  return /^[\w./~-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`
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
