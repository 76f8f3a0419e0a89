/**
 * `molecule connect`: the agent in this terminal gets the address of a workspace. Settings, state folder, backend,
 * platform, in this order, each refused with what to do about it; then it takes messages until a signal. The first
 * signal lets running turns finish, the second ends at once.
 */
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import {
  type BackendRegistry,
  builtinBackends,
  createBackendRegistry,
  resolveBackendName,
} from '../../backends/backends.ts'
import { unknownOptionKeys } from '../../backends/options.ts'
import { createPlatformClient } from '../../client/platform-client.ts'
import { awakeClock, systemClock } from '../../clock.ts'
import { loadDataDir } from '../../config/config.ts'
import { formatDuration, parseDuration } from '../../duration.ts'
import { MoleculeError } from '../../errors.ts'
import { ulid } from '../../ids.ts'
import { createLog, secretValues, silentLog } from '../../log.ts'
import { createProcesses } from '../../process/create-processes.ts'
import { EXIT_FAILED, type Terminal } from '../command-line.ts'
import { openLogFile } from '../data-folder/log-file.ts'
import { ignoreClosedOutput, listenForStopSignals } from '../terminal/stop-signals.ts'
import { type Bridge, type BridgeSettings, requireRunnable, startBridge } from './bridge.ts'
import { createDisplay, type Display } from './display.ts'
import { openStateFolder } from './state-folder.ts'
import { openTokenSource } from './token-source.ts'

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
}

export interface ConnectOptions {
  readonly workspaceId: string
  readonly flags: ConnectFlags
  readonly verbose: boolean
  readonly terminal: Terminal
  /** Shows the sentence and how the command is used, and ends with the code for that. */
  readonly usage: (problem: string) => never
}

/** Turns that one bridge may run at a time. */
const CONCURRENCY_MAX = 64
const DEFAULT_URL = 'http://localhost:8080'

export async function connect(options: ConnectOptions): Promise<void> {
  const registry = createBackendRegistry(builtinBackends)
  const { settings, drainMs } = readSettings(options, registry)
  // The flag that the token came by stands in every list of processes; this takes it away.
  process.title = `molecule connect ${settings.workspaceId}`
  warnOfUnknownOptions(settings, registry, options.terminal)
  if (options.flags.dryRun) return await dryRun(settings, registry, options.terminal)
  const { apiUrl, workspaceId } = settings
  const state = openStateFolder({ home: loadDataDir({ flags: {}, env: options.terminal.env }), apiUrl, workspaceId })
  try {
    await run(options, { settings, drainMs, registry, state })
  } finally {
    state.release()
  }
}

function readSettings({ workspaceId, flags, terminal, usage }: ConnectOptions, registry: BackendRegistry) {
  const { env } = terminal
  const attempt = <T>(read: () => T): T => {
    try {
      return read()
    } catch (thrown) {
      return usage(thrown instanceof Error ? thrown.message : String(thrown))
    }
  }
  const backend = attempt(() => resolveBackendName(flags.backend, registry.names()))
  const tokens = attempt(() => openTokenSource({ token: flags.token, tokenFile: flags.tokenFile, env }))
  const apiUrl = (flags.apiUrl ?? (env['MOLECULE_API_URL'] || DEFAULT_URL)).replace(/\/+$/, '')
  if (!/^https?:\/\//.test(apiUrl) || !URL.canParse(apiUrl)) usage(`--api-url is no http address: "${apiUrl}"`)
  if (!/^[\w-]{1,100}$/.test(workspaceId)) usage(`"${workspaceId}" is not the id of a workspace`)
  const dir = resolve(flags.dir ?? '.')
  if (statSync(dir, { throwIfNoEntry: false })?.isDirectory() !== true) usage(`--dir: there is no folder ${dir}`)
  const concurrency = Number(flags.concurrency ?? '1')
  if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > CONCURRENCY_MAX) {
    usage(`--concurrency must be a whole number from 1 to ${CONCURRENCY_MAX}`)
  }
  const drainMs = parseDuration(flags.drain ?? '10s')
  if (drainMs === undefined || drainMs < 0) usage('--drain must be a duration such as 10s or 2m')
  const settings: BridgeSettings = {
    ...{ workspaceId, apiUrl, tokens, backend, dir, concurrency },
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

interface Running {
  readonly settings: BridgeSettings
  readonly drainMs: number
  readonly registry: BackendRegistry
  readonly state: ReturnType<typeof openStateFolder>
}

async function run({ terminal, verbose }: ConnectOptions, running: Running): Promise<void> {
  const { settings, drainMs, registry, state } = running
  // The log's lines are for the file: the display tells people what matters to them.
  const quiet = { err: verbose ? terminal.err : () => undefined, interactive: terminal.interactive }
  const logFile = openLogFile({ path: state.logPath, terminal: quiet, verbose })
  const log = createLog('info', logFile)
  for (const secret of secretValues(terminal.env)) log.hide(secret)
  const clock = awakeClock(systemClock)
  const live = process.stdout.isTTY === true
  const display = createDisplay({ write: terminal.out, live, width: () => process.stdout.columns, clock })
  const restoreOutput = ignoreClosedOutput()
  const stop = listenForStopSignals()
  const stopping = new AbortController()
  void stop.first.then(() => stopping.abort())
  try {
    display.print(`connecting ${settings.workspaceId} at ${settings.apiUrl} to ${settings.backend} in ${settings.dir}`)
    const environment = withoutUndefined(terminal.env)
    const parts = { state, registry, clock, log, display, environment }
    const bridge = await startBridge(settings, parts, stopping.signal).catch((error: unknown) => {
      if (stopping.signal.aborted) return undefined
      throw error
    })
    if (bridge === undefined) return
    display.ready()
    await stop.first
    display.print(`stopping: running turns have ${formatDuration(drainMs)} to finish; a second Ctrl-C ends at once`)
    await Promise.race([bridge.close(drainMs), stop.second.then(() => stopNow(bridge, display))])
    display.print('stopped')
  } finally {
    stop.stopListening()
    restoreOutput()
    display.close()
    logFile.close()
  }
}

/** How long the processes of running turns may take to die at the second signal. */
const STOP_NOW_TIMEOUT_MS = 2000

async function stopNow(bridge: Bridge, display: Display): Promise<void> {
  display.print('ending now: messages whose turns had not finished will be run again')
  const deadline = setTimeout(() => process.exit(EXIT_FAILED), STOP_NOW_TIMEOUT_MS)
  try {
    await bridge.close(0)
  } finally {
    clearTimeout(deadline)
  }
}

/** Everything that can be looked at without taking a message or saying that we are there. */
async function dryRun(settings: BridgeSettings, registry: BackendRegistry, { out, env }: Terminal): Promise<void> {
  const { workspaceId, apiUrl, tokens, backend, options, dir, concurrency } = settings
  const clock = systemClock
  const processes = createProcesses({ owner: `dry-run-${ulid()}`, clock, log: silentLog })
  try {
    const context = { processes, environment: withoutUndefined(env), clock, log: silentLog }
    const about = await requireRunnable(backend, registry.build(backend, options, context))
    const platform = createPlatformClient({ url: apiUrl, token: tokens.read() })
    const { name, runtime, status } = await platform.getWorkspace(workspaceId)
    if (runtime !== 'external') {
      const message = `the platform itself runs ${workspaceId} (runtime ${runtime}); a bridge needs one made with the runtime external`
      throw new MoleculeError('unsupported_operation', message)
    }
    const lines = [
      'Dry run: nothing was registered and no message was taken.',
      `  platform   ${apiUrl}`,
      `  workspace  ${name} (${workspaceId}), ${status}`,
      `  backend    ${backend}${about ? ` (${about})` : ''}`,
      `  folder     ${dir}`,
      `  at a time  ${concurrency}`,
    ]
    out(`${lines.join('\n')}\n`)
  } finally {
    await processes.close()
  }
}

function withoutUndefined(environment: Terminal['env']): Record<string, string> {
  const entries = Object.entries(environment).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return Object.fromEntries(entries)
}
