/**
 * `molecule connect`: runs the messages of a workspace with an agent on this machine. It checks settings, state folder,
 * backend and platform in this order; each failure says what to do. Then it takes messages until a signal: the first
 * signal drains the running turns, the second stops them.
 */
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { BackendRegistry } from '../../backends/backends.ts'
import { unknownOptionKeys } from '../../backends/options.ts'
import { createPlatformClient } from '../../client/platform-client.ts'
import { withRetries } from '../../client/retry.ts'
import { awakeClock, systemClock } from '../../clock.ts'
import { isHttpUrl, loadDataDir } from '../../config/config.ts'
import { CONNECT_DEFAULTS, DEFAULT_URL } from '../../config/settings.ts'
import { formatDuration, parseDuration } from '../../duration.ts'
import { MoleculeError } from '../../errors.ts'
import { isWorkspaceId, ulid } from '../../ids.ts'
import { createLog, secretValues, silentLog } from '../../log.ts'
import { withoutControls } from '../../printable.ts'
import { bridgeEnvironment } from '../../process/child-environment.ts'
import { createProcesses } from '../../process/create-processes.ts'
import { trimEndOf } from '../../trim-end.ts'
import { NAME_CHARACTERS_MAX } from '../../workspaces/workspace.ts'
import { openLogFile } from '../data-folder/log-file.ts'
import { openTokenSource } from '../platform/token-source.ts'
import { namingOwnCommand, ownProgram } from '../terminal/own-command.ts'
import { closeNow, drainText, ignoreClosedOutput, listenForStopSignals } from '../terminal/stop-signals.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type BridgeSettings, requireRunnable, startBridge } from './bridge.ts'
import { createDisplay } from './display.ts'
import { findBackends } from './find-backends.ts'
import { openStateFolder, type StateFolder } from './state-folder.ts'

export interface ConnectFlags {
  readonly backend?: string
  readonly backendOpt?: Readonly<Record<string, string>>
  readonly token?: string
  readonly tokenFile?: string
  readonly apiUrl?: string
  readonly dir?: string
  readonly dryRun?: boolean
  readonly concurrency?: string
  readonly drain?: string
  readonly cgroups?: string
}

export interface ConnectOptions {
  readonly workspaceId: string
  readonly flags: ConnectFlags
  readonly verbose: boolean
  readonly terminal: Terminal
  /** Prints the problem and ends the command with the exit code for bad usage. */
  readonly usage: (problem: string) => never
}

/** `--concurrency` refuses more. */
const CONCURRENCY_MAX = 64

export async function connect(asked: ConnectOptions): Promise<void> {
  const options = { ...asked, terminal: namingOwnCommand(asked.terminal, ownProgram(asked.terminal.env)) }
  const home = loadDataDir({ flags: {}, env: options.terminal.env })
  const registry = await findBackends(options.flags.backend, { home, terminal: options.terminal })
  const { settings: given, drainMs } = readSettings(options, registry)
  // Hides the token: a list of processes shows the arguments of this one until its title changes.
  process.title = `molecule connect ${given.workspaceId}`
  try {
    await connectTo(given, { options, drainMs, registry, home })
  } catch (thrown) {
    throw isRefusedToken(thrown) ? refusedToken(thrown, given) : thrown
  }
}

async function connectTo(
  given: BridgeSettings,
  {
    options,
    drainMs,
    registry,
    home,
  }: { options: ConnectOptions; drainMs: number; registry: BackendRegistry; home: string },
): Promise<void> {
  const settings = isWorkspaceId(given.workspaceId) ? given : await withWorkspaceId(given, options)
  warnOfUnknownOptions(settings, registry, options.terminal)
  if (options.flags.dryRun) return await dryRun(settings, registry, options.terminal)
  const { apiUrl, workspaceId } = settings
  const state = openStateFolder({ home, apiUrl, workspaceId })
  try {
    await run(options, { settings, drainMs, registry, state })
  } finally {
    state.release()
  }
}

/** Only the platform gives a status. */
const isRefusedToken = (thrown: unknown): thrown is MoleculeError =>
  thrown instanceof MoleculeError && thrown.code === 'unauthenticated' && thrown.details['status'] !== undefined

/**
 * Prevents the advice for other commands, which send the admin token: a bridge does not use it. The command in backticks is
 * for the machine of the admin, so it is not rewritten with the settings of this one.
 */
function refusedToken(cause: MoleculeError, { apiUrl, tokens, workspaceId }: BridgeSettings): MoleculeError {
  const message = `the platform at ${apiUrl} does not accept the token from ${tokens.origin} (${cause.message.split(':')[0]}); give the token of ${workspaceId} by --token, --token-file or MOLECULE_WORKSPACE_TOKEN. An admin makes a new one with \`molecule workspace connect-command ${workspaceId}\` or on the page of the workspace, under Details`
  return new MoleculeError('unauthenticated', message, { cause })
}

/** The settings with the id of the workspace, which was given by its name. Waits for a platform that is down. */
async function withWorkspaceId(
  settings: BridgeSettings,
  { flags, terminal: { err } }: ConnectOptions,
): Promise<BridgeSettings> {
  const { apiUrl: url, tokens, workspaceId: name } = settings
  const { id } = await withRetries(
    () => createPlatformClient({ url, token: tokens.read() }).call('GET /workspaces/{id}', { id: name }),
    {
      clock: systemClock,
      // A dry run reports what is wrong and ends.
      triesMax: flags.dryRun ? 1 : Number.POSITIVE_INFINITY,
      onRetry: (error, delayMs) =>
        err(`${withoutControls(error.message)}; trying again in ${formatDuration(delayMs)}\n`),
    },
  )
  return { ...settings, workspaceId: id }
}

function readSettings({ workspaceId, flags, terminal, usage }: ConnectOptions, registry: BackendRegistry) {
  const { env } = terminal
  const attempt = <T>(read: () => T): T => {
    try {
      return read()
    } catch (thrown) {
      // The name is right, and what it names is broken.
      if (thrown instanceof MoleculeError && thrown.code === 'backend_missing') throw thrown
      return usage(thrown instanceof Error ? thrown.message : String(thrown))
    }
  }
  const backend = attempt(() => registry.resolve(flags.backend))
  const tokens = attempt(() => openTokenSource({ token: flags.token, tokenFile: flags.tokenFile, env }))
  const apiUrl = trimEndOf(flags.apiUrl ?? (env['MOLECULE_API_URL'] || DEFAULT_URL), '/')
  if (!isHttpUrl(apiUrl)) usage(`--api-url is not an http address: "${apiUrl}"`)
  if (workspaceId.trim() === '' || workspaceId.length > NAME_CHARACTERS_MAX)
    usage('name the workspace by its id or name')
  const dir = resolve(flags.dir ?? CONNECT_DEFAULTS.dir)
  if (statSync(dir, { throwIfNoEntry: false })?.isDirectory() !== true) usage(`--dir: there is no folder ${dir}`)
  const concurrency = Number(flags.concurrency ?? CONNECT_DEFAULTS.concurrency)
  if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > CONCURRENCY_MAX) {
    usage(`--concurrency must be a whole number from 1 to ${CONCURRENCY_MAX}`)
  }
  const drainMs = parseDuration(flags.drain ?? CONNECT_DEFAULTS.drain)
  if (drainMs === undefined || drainMs < 0) usage('--drain must be a duration such as 10s or 2m')
  const cgroups = flags.cgroups ?? (env['MOLECULE_CGROUPS'] || CONNECT_DEFAULTS.cgroups)
  if (cgroups !== 'auto' && cgroups !== 'off') usage('--cgroups must be auto or off')
  const settings: BridgeSettings = {
    workspaceId,
    apiUrl,
    tokens,
    backend,
    dir,
    concurrency,
    usesCgroups: cgroups === 'auto',
    options: flags.backendOpt ?? {},
  }
  return { settings, drainMs: drainMs as number }
}

function warnOfUnknownOptions(
  { backend, options }: BridgeSettings,
  registry: BackendRegistry,
  { err }: Terminal,
): void {
  const definition = registry.get(backend)
  const known = Object.keys(definition.options).sort().join(', ')
  for (const key of unknownOptionKeys(definition, options)) {
    err(`warning: the backend ${backend} has no option "${key}" and ignores it; its options are ${known}\n`)
  }
}

async function run(
  { terminal, verbose }: ConnectOptions,
  {
    settings,
    drainMs,
    registry,
    state,
  }: { settings: BridgeSettings; drainMs: number; registry: BackendRegistry; state: StateFolder },
): Promise<void> {
  // Log lines go to the file only, unless verbose: the display shows what matters to the user.
  const quiet = { err: verbose ? terminal.err : () => undefined, interactive: terminal.interactive }
  const logFile = openLogFile({ path: state.logPath, terminal: quiet, verbose })
  const log = createLog('info', logFile)
  for (const secret of secretValues(terminal.env)) log.hide(secret)
  const clock = awakeClock(systemClock)
  const live = process.stdout.isTTY === true
  const display = createDisplay({ write: terminal.out, live, width: () => process.stdout.columns, clock })
  const restoreOutput = ignoreClosedOutput()
  const stop = listenForStopSignals(terminal.env)
  const stopping = new AbortController()
  void stop.first.then(() => stopping.abort())
  try {
    display.print(`connecting ${settings.workspaceId} at ${settings.apiUrl} to ${settings.backend} in ${settings.dir}`)
    const environment = bridgeEnvironment(terminal.env)
    const parts = { state, registry, clock, log, display, environment }
    const bridge = await startBridge(settings, parts, stopping.signal).catch((error: unknown) => {
      if (stopping.signal.aborted) return undefined
      throw error
    })
    if (bridge === undefined) return
    display.ready()
    await stop.first
    display.print(`stopping: ${drainText(display.runningTurns(), drainMs)}`)
    const stopNow = () => {
      display.print('stopping now: messages with unfinished turns will run again')
      return closeNow(() => bridge.close(0))
    }
    await Promise.race([bridge.close(drainMs), stop.second.then(stopNow)])
    display.print('stopped')
  } finally {
    stop.stopListening()
    restoreOutput()
    display.close()
    logFile.close()
  }
}

/** Checks everything that can be checked without a registration and without taking a message. */
async function dryRun(settings: BridgeSettings, registry: BackendRegistry, { out, env }: Terminal): Promise<void> {
  const { workspaceId, apiUrl, tokens, backend, options, dir, concurrency } = settings
  const clock = systemClock
  const processes = createProcesses({ owner: `dry-run-${ulid()}`, clock, log: silentLog })
  try {
    const context = { processes, environment: bridgeEnvironment(env), clock, log: silentLog }
    const about = await requireRunnable(backend, registry.build(backend, options, context))
    const platform = createPlatformClient({ url: apiUrl, token: tokens.read() })
    const { name, runtime, status } = await platform.call('GET /workspaces/{id}', { id: workspaceId })
    if (runtime !== 'external') {
      const message = `the platform itself runs ${workspaceId} (runtime ${runtime}); a bridge needs a workspace with the runtime external`
      throw new MoleculeError('unsupported_operation', message)
    }
    const lines = [
      'Dry run: nothing was registered and no message was taken.',
      `  platform   ${apiUrl}`,
      `  workspace  ${name} (${workspaceId}), ${status}`,
      `  backend    ${backend}${about === '' ? '' : ` (${about})`}`,
      `  folder     ${dir}`,
      `  at a time  ${concurrency}`,
    ]
    out(`${lines.join('\n')}\n`)
  } finally {
    await processes.close()
  }
}
