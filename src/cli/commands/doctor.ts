/**
 * `molecule doctor`: looks at everything that has to be right on this machine and says what is not, and what to do. It
 * changes nothing. The exit code is 1 when something is broken; an agent that is simply not installed is not.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BackendContext } from '../../backends/backend.ts'
import { systemClock } from '../../clock.ts'
import { toMoleculeError } from '../../errors.ts'
import { ulid } from '../../ids.ts'
import { silentLog } from '../../log.ts'
import { createProcesses } from '../../process/create-processes.ts'
import type { CommandContext, DefineCommand } from '../command-context.ts'
import { EXIT_FAILED, ExitError } from '../command-line.ts'
import { readRunningPlatform } from '../data-folder/data-folder.ts'
import { examineAgents } from '../doctor/agents.ts'
import type { Finding, FindingVerdict } from '../doctor/finding.ts'
import { examineMachine } from '../doctor/machine.ts'
import { renderTable } from '../terminal/output.ts'
import { withProgress } from '../terminal/progress.ts'
import { listenForStopSignals } from '../terminal/stop-signals.ts'
import { readVersion } from '../version.ts'

export const define: DefineCommand = (command, openContext) => {
  command
    .option('--probe', 'also let each agent answer once, to see whether its provider lets it in; it asks its model')
    .action(async ({ probe }: { probe?: boolean }) => doctor(await openContext(), probe === true))
}

const SIGNS: Readonly<Record<FindingVerdict, string>> = { ok: 'ok', note: 'note', broken: 'BROKEN' }

async function doctor(context: CommandContext, probes: boolean): Promise<void> {
  const findings = await untilStopped((signal) =>
    withProgress(context.terminal, 'looking at this machine', () => examine(context, probes, signal)),
  )
  await context.show(findings, () =>
    renderTable(
      findings,
      [
        { title: '', of: ({ verdict }) => SIGNS[verdict] },
        { title: 'what', of: ({ area, name }) => `${area}: ${name}` },
        { title: 'found', of: ({ text, remedy }) => (remedy === undefined ? text : `${text} -> ${remedy}`) },
      ],
      'Nothing was looked at.',
    ),
  )
  if (findings.some(({ verdict }) => verdict === 'broken')) throw new ExitError(EXIT_FAILED)
}

/** Agents that are being looked at are processes of their own: they do not end because this one does. */
async function untilStopped<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController()
  const signals = listenForStopSignals()
  void signals.first.then(() => stop.abort())
  try {
    const result = await work(stop.signal)
    if (stop.signal.aborted) throw new ExitError(EXIT_FAILED)
    return result
  } finally {
    signals.stopListening()
  }
}

async function examine(context: CommandContext, probes: boolean, signal: AbortSignal): Promise<Finding[]> {
  const { terminal, dataDir } = context
  const [agents, machine, platform] = await Promise.all([
    withBackends(terminal.env, (backendContext) =>
      examineAgents({ env: terminal.env, context: backendContext, probes, signal }),
    ),
    examineMachine(dataDir, terminal.env),
    examinePlatform(context),
  ])
  return [...agents, ...machine, ...platform]
}

/** What a backend needs to look at its program; its records of processes lie in a folder of their own. */
async function withBackends<T>(
  env: CommandContext['terminal']['env'],
  work: (context: BackendContext) => Promise<T>,
): Promise<T> {
  const recordsDir = mkdtempSync(join(tmpdir(), 'molecule-doctor-'))
  const processes = createProcesses({ owner: ulid(), recordsDir, clock: systemClock, log: silentLog })
  const entries = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined)
  try {
    return await work({ processes, environment: Object.fromEntries(entries), clock: systemClock, log: silentLog })
  } finally {
    await processes.close()
    rmSync(recordsDir, { recursive: true, force: true })
  }
}

async function examinePlatform({ apiUrl, dataDir, platform }: CommandContext): Promise<Finding[]> {
  const about = { area: 'platform', name: apiUrl }
  try {
    const client = platform()
    const { ready, reason } = await client.ready()
    if (!ready)
      return [{ ...about, verdict: 'broken', text: `it takes no work: ${reason}`, remedy: '"molecule logs" says why' }]
    const { version } = await client.version()
    const own = readVersion()
    const text = `it runs and takes work, version ${version}`
    const same: Finding = { ...about, verdict: 'ok', text }
    const other: Finding = {
      ...about,
      verdict: 'note',
      text: `${text}, this command is ${own}`,
      remedy: 'restart the platform',
    }
    const failed = (await client.listWorkspaces()).filter(({ status }) => status === 'failed')
    return [
      version === own ? same : other,
      ...failed.map(({ name, id, status_reason: why }): Finding => {
        const remedy = `correct it, then "molecule workspace restart ${id}"`
        return { area: 'workspaces', name, verdict: 'broken', text: why ?? 'failed', remedy }
      }),
    ]
  } catch (thrown) {
    const { message, code } = toMoleculeError(thrown)
    const away = code === 'timeout' && readRunningPlatform(dataDir) === undefined
    if (away) return [{ ...about, verdict: 'note', text: 'not running', remedy: 'start it: molecule up' }]
    return [{ ...about, verdict: 'broken', text: message }]
  }
}
