/**
 * Checks the agent CLIs: installed, version, drift, payer. The backend's `validate` checks the program and its `probe` the
 * protocol; neither calls a model. Only a real turn shows whether the provider accepts the log-in, so `--probe` runs one.
 * Where a platform runs, its PATH and its log-ins count and not those of this shell: it is the one that starts the agents.
 */
import type { Backend, BackendContext, BackendDefinition, Drift } from '../../backends/backend.ts'
import { builtinBackends, createBackendRegistry } from '../../backends/backends.ts'
import { findProgram } from '../../backends/engine/probe/validate-cli.ts'
import type { FoundAgentView } from '../../client/views.ts'
import { toMoleculeError } from '../../errors.ts'
import type { Environment } from '../terminal/terminal.ts'
import { AGENT_CLIS, type AgentCli, loginRemedy, VALIDATE_TIMEOUT_MS } from './agent-clis.ts'
import type { Finding } from './finding.ts'
import { type TurnTrial, tryTurn } from './try-turn.ts'

/** Room for two probes: a second one follows when the first finds something missing. */
const DRIFT_TIMEOUT_MS = 120_000

export interface ExamineAgentsOptions {
  readonly env: Environment
  readonly context: BackendContext
  /** Also runs one real turn of each agent, which calls its model. */
  readonly probes: boolean
  readonly signal: AbortSignal
  /** What the running platform sees; undefined where none runs. */
  readonly platform?: PlatformAgents | undefined
}

export interface PlatformAgents {
  readonly agents: readonly FoundAgentView[]
  /** Its programs can be started from here. */
  readonly isOnThisMachine: boolean
}

export async function examineAgents(options: ExamineAgentsOptions): Promise<Finding[]> {
  return await Promise.all(AGENT_CLIS.map((cli) => examineAgent(cli, options)))
}

/** The agents on PATH, each with its backend. */
export async function findInstalledAgents(
  env: Environment,
): Promise<{ readonly bin: string; readonly backend: string }[]> {
  const checked = await Promise.all(AGENT_CLIS.map(async (cli) => ({ cli, isHere: await isInstalled(cli, env) })))
  return checked.filter(({ isHere }) => isHere).map(({ cli }) => cli)
}

const isInstalled = async (cli: AgentCli, env: Environment): Promise<boolean> => (await pathOf(cli, env)) !== undefined

const pathOf = async ({ bin }: AgentCli, env: Environment): Promise<string | undefined> =>
  (await findProgram(bin, env['PATH'] ?? '')).path

type FindingResult = Pick<Finding, 'verdict' | 'text' | 'remedy'>

async function examineAgent(cli: AgentCli, options: ExamineAgentsOptions): Promise<Finding> {
  const { platform } = options
  const seen = platform?.agents.find(({ backend }) => backend === cli.backend)
  const isElsewhere = platform?.isOnThisMachine === false
  const result = seen !== undefined && isElsewhere ? describeElsewhere(seen) : await examineHere(cli, options, seen)
  return { area: 'agents', name: cli.bin, ...result }
}

/** An agent on another machine: no program of it can be started from here. */
function describeElsewhere(seen: FoundAgentView): FindingResult {
  const { installed, version = 'unknown version', problem, remedy, logged_in: isLoggedIn, pays } = seen
  const next = remedy === undefined ? {} : { remedy }
  if (!installed) return { verdict: 'note', text: 'not installed', ...next }
  if (problem !== undefined) return { verdict: 'broken', text: problem, ...next }
  const paid = isLoggedIn ? paysText(pays) : 'no log-in found'
  return { verdict: isLoggedIn ? 'ok' : 'note', text: `${version}; ${paid}`, ...next }
}

async function examineHere(
  cli: AgentCli,
  options: ExamineAgentsOptions,
  seen: FoundAgentView | undefined,
): Promise<FindingResult> {
  const { env, context } = options
  const here = await pathOf(cli, env)
  if (seen?.installed === false && here !== undefined) {
    const text = `not on the PATH of the platform, while this shell finds ${here}`
    return { verdict: 'note', text, remedy: 'start the platform from this shell, or put the program on its PATH' }
  }
  const path = seen === undefined ? here : seen.path
  if (path === undefined) return { verdict: 'note', text: 'not installed', remedy: cli.install }
  const registry = createBackendRegistry(builtinBackends)
  const backend = registry.build(cli.backend, seen === undefined ? {} : { bin: path }, context)
  try {
    return await examineInstalled(cli, { ...options, backend, definition: registry.get(cli.backend), seen })
  } finally {
    await backend.close()
  }
}

async function examineInstalled(
  cli: AgentCli,
  options: ExamineAgentsOptions & {
    readonly backend: Backend
    readonly definition: BackendDefinition
    readonly seen: FoundAgentView | undefined
  },
): Promise<FindingResult> {
  const { backend, definition, env, probes, signal, seen } = options
  const valid =
    seen?.version === undefined ? await backend.validate(withTimeout(VALIDATE_TIMEOUT_MS, signal)) : undefined
  if (valid?.ok === false) return { verdict: 'broken', text: valid.problem, remedy: valid.remedy }
  const version = seen?.version ?? valid?.version ?? 'unknown version'
  const { tested, testedFrom } = definition
  const range = testedFrom === undefined ? tested : `${testedFrom} to ${tested}`
  const title = tested === undefined || tested === version ? version : `${version} (tested: ${range})`
  const drift = await checkDrift(backend, signal)
  const installTested = tested === undefined ? cli.install : `${cli.install}@${tested}`
  if (drift.verdict === 'broken') return { verdict: 'broken', text: `${title}: ${drift.text}`, remedy: installTested }
  const trial = probes ? await tryTurn(backend, signal) : undefined
  if (trial?.understood === false) {
    return { verdict: 'broken', text: `${title}: ${drift.text}; ${trial.text}`, remedy: installTested }
  }
  const paid = describePayment(cli, env, { trial, seen })
  const limits = backend.limits?.() ?? []
  const text = [`${title}: ${drift.text}`, ...limits, paid.text].join('; ')
  const isLess = drift.verdict === 'note' || limits.length > 0
  const remedy = paid.remedy ?? (isLess ? installTested : undefined)
  return { verdict: remedy === undefined ? 'ok' : 'note', text, remedy }
}

const withTimeout = (ms: number, signal: AbortSignal) => AbortSignal.any([signal, AbortSignal.timeout(ms)])

/** Checks whether the program still speaks the protocol that its backend expects. A probe that fails is only a note. */
export async function checkDrift(backend: Backend, signal: AbortSignal): Promise<FindingResult> {
  try {
    const drifts = (await backend.probe?.(withTimeout(DRIFT_TIMEOUT_MS, signal))) ?? []
    if (drifts.length === 0) return { verdict: 'ok', text: 'speaks as expected' }
    const isBroken = drifts.some(({ instead }) => instead === undefined)
    return { verdict: isBroken ? 'broken' : 'note', text: drifts.map(driftText).join('; ') }
  } catch (thrown) {
    return { verdict: 'note', text: `its protocol could not be checked (${toMoleculeError(thrown).message})` }
  }
}

const driftText = ({ missing, instead }: Drift): string => `${missing}, ${instead ?? 'its turns fail'}`

/** A platform of an earlier version does not say who pays. */
const paysText = (pays: string | undefined): string => (pays === undefined ? 'logged in' : `${pays} pays`)

function describePayment(
  cli: AgentCli,
  env: Environment,
  { trial, seen }: { readonly trial: TurnTrial | undefined; readonly seen: FoundAgentView | undefined },
): { text: string; remedy?: string } {
  const own = cli.payer(env)
  const isPaid = seen?.logged_in ?? own !== undefined
  const payer = isPaid ? paysText(seen === undefined ? own : seen.pays) : undefined
  if (trial?.loggedIn === false) return { text: trial.text, remedy: loginRemedy(cli, env) }
  if (payer !== undefined) return { text: `${trial === undefined ? '' : `${trial.text}; `}${payer}` }
  if (seen !== undefined && own !== undefined) {
    const text = `the platform finds no log-in, while this shell has one (${own})`
    return { text, remedy: `start the platform from this shell; or ${seen.remedy ?? loginRemedy(cli, env)}` }
  }
  // It answered, so it has credentials, in a place that this check does not know.
  if (trial?.loggedIn) return { text: `${trial.text}; its own settings say who pays` }
  return { text: 'no log-in found', remedy: seen?.remedy ?? loginRemedy(cli, env) }
}
