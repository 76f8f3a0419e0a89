/**
 * `molecule doctor`: checks the agents, the machine and the platform, and says what is wrong and what to do. It changes
 * nothing. The exit code is 1 when something is broken; an agent that is not installed does not count as broken.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BackendContext } from '../../../backends/backend.ts'
import { readReadiness } from '../../../client/readiness.ts'
import { listWorkspaces } from '../../../client/workspaces.ts'
import { systemClock } from '../../../clock.ts'
import { toMoleculeError } from '../../../errors.ts'
import { ulid } from '../../../ids.ts'
import { silentLog } from '../../../log.ts'
import { platformEnvironment } from '../../../process/child-environment.ts'
import { createProcesses } from '../../../process/create-processes.ts'
import type { CommandContext, DefineCommand } from '../../command-context.ts'
import { readRunningPlatform } from '../../data-folder/data-folder.ts'
import { examineAdapters } from '../../doctor/adapters.ts'
import { examineAgents, type PlatformAgents } from '../../doctor/agents.ts'
import type { Finding, FindingVerdict } from '../../doctor/finding.ts'
import { examineMachine } from '../../doctor/machine.ts'
import { EXIT_FAILED, ExitError } from '../../exit-codes.ts'
import { shellQuoted } from '../../terminal/own-command.ts'
import { withProgress } from '../../terminal/progress.ts'
import { listenForStopSignals } from '../../terminal/stop-signals.ts'
import type { Environment } from '../../terminal/terminal.ts'
import { readVersion } from '../../version.ts'
import { isOnThisMachine } from '../workspaces/workspace-create.ts'

export const define: DefineCommand = (command, openContext) => {
  command
    .option('--probe', 'also run one turn of each agent, to check its log-in; this calls its model')
    .action(async ({ probe }: { probe?: boolean }) => doctor(await openContext(), probe === true))
}

const VERDICT_TEXTS: Readonly<Record<FindingVerdict, string>> = { ok: 'ok', note: 'note', broken: 'BROKEN' }

async function doctor(context: CommandContext, probes: boolean): Promise<void> {
  const findings = await untilStopped(context.terminal.env, (signal) =>
    withProgress(context.terminal, 'checking this machine', () => examine(context, probes, signal)),
  )
  await context.show(findings, () =>
    context.table(
      findings,
      [
        { title: '', of: ({ verdict }) => VERDICT_TEXTS[verdict] },
        { title: 'what', of: ({ area, name }) => `${area}: ${name}` },
        {
          title: 'found',
          of: ({ text, remedy }) => (remedy === undefined ? text : `${text} -> ${remedy}`),
          isWrapped: true,
        },
      ],
      'Nothing was checked.',
    ),
  )
  if (findings.some(({ verdict }) => verdict === 'broken')) throw new ExitError(EXIT_FAILED)
}

/** Prevents orphans after Ctrl-C: the agents run in processes of their own and must be killed before this one ends. */
async function untilStopped<T>(env: Environment, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController()
  const signals = listenForStopSignals(env)
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
  const { seen, finding } = await askPlatform(context)
  const [[agents, adapters], machine, platform] = await Promise.all([
    withBackends(terminal.env, (backendContext) =>
      Promise.all([
        examineAgents({ env: terminal.env, context: backendContext, probes, signal, platform: seen }),
        examineAdapters(dataDir, backendContext, signal),
      ]),
    ),
    examineMachine(dataDir, terminal.env),
    examinePlatform(context),
  ])
  return [finding, ...agents, ...adapters, ...machine, ...platform]
}

/** The agents as the running platform sees them, and a line that says whose PATH and log-ins count. */
async function askPlatform(
  context: CommandContext,
): Promise<{ readonly seen?: PlatformAgents; readonly finding: Finding }> {
  const about = { area: 'agents', name: 'found by' }
  try {
    const agents = (await context.platform().call('GET /agents')).agents
    const text = `the running platform at ${context.apiUrl}: its PATH and its log-ins count`
    return {
      seen: { agents, isOnThisMachine: isOnThisMachine(context) },
      finding: { ...about, verdict: 'ok', text },
    }
  } catch (thrown) {
    const { code, message } = toMoleculeError(thrown)
    const why = code === 'timeout' ? 'no platform runs' : `the platform does not say which agents it finds: ${message}`
    return {
      finding: { ...about, verdict: 'note', text: `this shell: its PATH and its log-ins count, because ${why}` },
    }
  }
}

/** Gives backends a context whose process records are in a temporary folder. */
async function withBackends<T>(env: Environment, work: (context: BackendContext) => Promise<T>): Promise<T> {
  const recordsDir = mkdtempSync(join(tmpdir(), 'molecule-doctor-'))
  const processes = createProcesses({ owner: ulid(), recordsDir, clock: systemClock, log: silentLog })
  try {
    return await work({ processes, environment: platformEnvironment(env), clock: systemClock, log: silentLog })
  } finally {
    await processes.close()
    rmSync(recordsDir, { recursive: true, force: true })
  }
}

async function examinePlatform({ apiUrl, dataDir, platform }: CommandContext): Promise<Finding[]> {
  const about = { area: 'platform', name: apiUrl }
  try {
    const client = platform()
    const { ready, reason } = await readReadiness(client)
    if (!ready)
      return [{ ...about, verdict: 'broken', text: `it is not ready: ${reason}`, remedy: '"molecule logs" shows why' }]
    const { version } = await client.call('GET /version')
    const own = readVersion()
    const text = `it runs and is ready, version ${version}`
    const sameVersion: Finding = { ...about, verdict: 'ok', text }
    const otherVersion: Finding = {
      ...about,
      verdict: 'note',
      text: `${text}, this command is ${own}`,
      remedy: 'restart the platform',
    }
    const workspaces = await listWorkspaces(client)
    const failed = workspaces.filter(({ status }) => status === 'failed')
    const locked = workspaces.filter(({ status }) => status === 'needs_login')
    return [
      version === own ? sameVersion : otherVersion,
      ...failed.map(({ name, status_reason: why }): Finding => {
        const remedy = `correct it, then "molecule workspace restart ${shellQuoted(name)}"`
        return { area: 'workspaces', name, verdict: 'broken', text: why ?? 'failed', remedy }
      }),
      ...locked.map(({ name, status_reason: why }): Finding => {
        return {
          area: 'workspaces',
          name,
          verdict: 'broken',
          text: `it needs a log-in: ${why ?? 'its agent is not logged in'}`,
        }
      }),
    ]
  } catch (thrown) {
    const { message, code } = toMoleculeError(thrown)
    const isDown = code === 'timeout' && readRunningPlatform(dataDir) === undefined
    if (isDown) return [{ ...about, verdict: 'note', text: 'not running', remedy: 'start it: "molecule up"' }]
    return [{ ...about, verdict: 'broken', text: message }]
  }
}
