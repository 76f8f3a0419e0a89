/**
 * Checks the agent CLIs on this machine: installed, version, drift, payer. The backend's `validate` checks the program and
 * its `probe` the protocol; neither calls a model. Only a real turn shows whether the provider accepts the log-in, so
 * `--probe` runs one.
 */
import type { Backend, BackendContext, BackendDefinition, Drift } from '../../backends/backend.ts'
import { builtinBackends, createBackendRegistry } from '../../backends/backends.ts'
import { findProgram } from '../../backends/engine/probe/validate-cli.ts'
import { toMoleculeError } from '../../errors.ts'
import type { Environment } from '../terminal/terminal.ts'
import { AGENT_CLIS, type AgentCli, loginRemedy } from './agent-clis.ts'
import type { Finding } from './finding.ts'
import { type TurnTrial, tryTurn } from './try-turn.ts'

const VALIDATE_TIMEOUT_MS = 60_000
/** Room for two probes: a second one follows when the first finds something missing. */
const DRIFT_TIMEOUT_MS = 120_000

export interface ExamineAgentsOptions {
  readonly env: Environment
  readonly context: BackendContext
  /** Also runs one real turn of each agent, which calls its model. */
  readonly probes: boolean
  readonly signal: AbortSignal
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

const isInstalled = async ({ bin }: AgentCli, env: Environment): Promise<boolean> =>
  (await findProgram(bin, env['PATH'] ?? '')).path !== undefined

async function examineAgent(cli: AgentCli, options: ExamineAgentsOptions): Promise<Finding> {
  const about = { area: 'agents', name: cli.bin }
  const { env, context } = options
  if (!(await isInstalled(cli, env))) return { ...about, verdict: 'note', text: 'not installed', remedy: cli.install }
  const registry = createBackendRegistry(builtinBackends)
  const backend = registry.build(cli.backend, {}, context)
  try {
    return {
      ...about,
      ...(await examineInstalled(cli, { ...options, backend, definition: registry.get(cli.backend) })),
    }
  } finally {
    await backend.close()
  }
}

type FindingResult = Pick<Finding, 'verdict' | 'text' | 'remedy'>

async function examineInstalled(
  cli: AgentCli,
  options: ExamineAgentsOptions & { readonly backend: Backend; readonly definition: BackendDefinition },
): Promise<FindingResult> {
  const { backend, definition, env, probes, signal } = options
  const valid = await backend.validate(withTimeout(VALIDATE_TIMEOUT_MS, signal))
  if (!valid.ok) return { verdict: 'broken', text: valid.problem, remedy: valid.remedy }
  const version = valid.version ?? 'unknown version'
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
  const paid = describePayment(cli, env, trial)
  const limits = backend.limits?.() ?? []
  const text = [`${title}: ${drift.text}`, ...limits, paid.text].join('; ')
  const isLess = drift.verdict === 'note' || limits.length > 0
  const remedy = paid.remedy ?? (isLess ? installTested : undefined)
  return { verdict: remedy === undefined ? 'ok' : 'note', text, ...(remedy !== undefined && { remedy }) }
}

const withTimeout = (ms: number, signal: AbortSignal) => AbortSignal.any([signal, AbortSignal.timeout(ms)])

/** Checks whether the program still speaks the protocol that its backend expects. A probe that fails is only a note. */
async function checkDrift(backend: Backend, signal: AbortSignal): Promise<FindingResult> {
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

function describePayment(
  cli: AgentCli,
  env: Environment,
  trial: TurnTrial | undefined,
): { text: string; remedy?: string } {
  const payer = cli.payer(env)
  if (trial?.loggedIn === false) return { text: trial.text, remedy: loginRemedy(cli, env) }
  if (payer !== undefined) return { text: `${trial === undefined ? '' : `${trial.text}; `}${payer} pays` }
  // It answered, so it has credentials, in a place that this check does not know.
  if (trial?.loggedIn) return { text: `${trial.text}; its own settings say who pays` }
  return { text: 'no log-in found', remedy: loginRemedy(cli, env) }
}
