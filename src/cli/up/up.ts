/**
 * `molecule up`: the platform in one process. Settings, data folder, token, parts, in this order, each refused with
 * what to do about it; then it runs until a signal, drains and leaves nothing behind. The first signal asks running
 * turns to finish, the second stops them.
 */
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadConfig, loadDataDir, type PlatformConfig } from '../../config/config.ts'
import { formatDuration } from '../../duration.ts'
import { MoleculeError } from '../../errors.ts'
import { createLog, type MaskingLog } from '../../log.ts'
import { EXIT_FAILED, type Terminal } from '../command-line.ts'
import { crashPoint } from '../crash-point.ts'
import { type AdminToken, ensureAdminToken } from '../data-folder/admin-token.ts'
import { type DataFolder, openDataFolder } from '../data-folder/data-folder.ts'
import { openLogFile } from '../data-folder/log-file.ts'
import { ignoreClosedOutput, listenForStopSignals } from '../terminal/stop-signals.ts'
import type { Platform, WireOptions } from '../wire.ts'
import { findPortHolder } from './port-holder.ts'

export interface UpOptions {
  /** As typed, by long name. */
  readonly flags: Readonly<Record<string, string | undefined>>
  readonly verbose: boolean
  readonly terminal: Terminal
}

const LOG_FILE = 'molecule.log'

/** Resolves when the platform has been stopped by a signal. */
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

interface Running {
  readonly config: PlatformConfig
  readonly folder: DataFolder
  readonly log: MaskingLog
  readonly terminal: Terminal
}

async function run({ config, folder, log, terminal }: Running): Promise<void> {
  if (folder.openToOthers)
    log.warn({ path: folder.path }, 'others on this machine can read the data folder; chmod 700 it')
  const adminToken = ensureAdminToken(config.dataDir, terminal.env['MOLECULE_ADMIN_TOKEN'], log)
  log.hide(adminToken.token)
  const logCrash = (err: Error) => log.error({ err }, 'the platform ends by a defect of its own')
  process.on('uncaughtExceptionMonitor', logCrash)
  const restoreOutput = ignoreClosedOutput()
  const stop = listenForStopSignals()
  try {
    const environment = terminal.env
    const options = { config, adminToken: adminToken.token, log, environment, ...crashPoint(environment) }
    const platform = await startPlatform(options)
    folder.announce({ pid: process.pid, url: platform.url, startedAt: new Date().toISOString() })
    terminal.out(greeting(platform, adminToken, { config, env: environment }))
    log.info({ url: platform.url, pid: process.pid, dataDir: config.dataDir }, 'the platform is up')
    const signal = await stop.first
    log.info({ signal, drainMs: config.drainMs }, 'the platform stops')
    terminal.err(
      `Stopping: running turns have ${formatDuration(config.drainMs)} to finish. Press Ctrl-C again to stop them now.\n`,
    )
    await Promise.race([platform.close(config.drainMs), stop.second.then(() => stopNow(platform, terminal))])
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

/** Names who has the port, where the system tells. */
function portTakenError({ host, port }: PlatformConfig, cause: MoleculeError): MoleculeError {
  const holder = findPortHolder(port)
  const by = holder ? ` by process ${holder.pid} (${holder.command})` : ''
  const message = `port ${port} on ${host} is taken${by}. Stop it, or choose another port: molecule up --port ${port + 1}`
  return new MoleculeError('in_use', message, { cause, details: { port, ...holder } })
}

interface Place {
  readonly config: PlatformConfig
  readonly env: Terminal['env']
}

function greeting(platform: Platform, adminToken: AdminToken, { config, env }: Place): string {
  const { url, loginUrl, orphansReaped } = platform
  const lines = [
    `Molecule runs at ${url}`,
    `  log in       ${loginUrl}   (once, within 10 minutes)`,
    `  admin token  ${adminToken.path}`,
    `  log          ${join(config.dataDir, LOG_FILE)}`,
    '',
    'Make a first workspace, in another terminal:',
    `  ${ownCommand(config.dataDir, env)} init`,
    '',
  ]
  if (orphansReaped > 0)
    lines.splice(1, 0, `  cleaned up   ${orphansReaped} process(es) that an earlier crash had left`)
  return `${lines.join('\n')}\n`
}

const MOLECULE = fileURLToPath(new URL('../../../bin/molecule', import.meta.url))

/** This program as it is called from here, and told where this platform lives if it would look elsewhere. */
function ownCommand(dataDir: string, env: Terminal['env']): string {
  const found = loadDataDir({ flags: {}, env })
  const home = found === dataDir && !env['MOLECULE_HOME'] ? '' : `MOLECULE_HOME=${shellQuoted(dataDir)} `
  const path = relative('', MOLECULE)
  return home + shellQuoted(path.includes('/') ? path : `./${path}`)
}

/** As the shell wants it. */
function shellQuoted(path: string): string {
  return /^[\w./~-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`
}

/** How long the processes of running turns may take to die at the second signal. */
const STOP_NOW_TIMEOUT_MS = 2000

/** Closing again with no time left cuts the first closing short; what does not let itself be closed is left. */
async function stopNow(platform: Platform, { err }: Terminal): Promise<void> {
  err('Stopping now: messages whose turns had not finished will be run again at the next start.\n')
  const deadline = setTimeout(() => process.exit(EXIT_FAILED), STOP_NOW_TIMEOUT_MS)
  try {
    await platform.close(0)
  } finally {
    clearTimeout(deadline)
  }
}
