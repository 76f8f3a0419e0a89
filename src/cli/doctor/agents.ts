/**
 * The agent CLIs on this machine: is it there, which version, does it still speak as expected, and who pays. Its
 * backend's own `validate` looks at the program and its `probe` at what it says; neither asks a model. Whether its
 * provider lets it in only a turn can show, so that is tried when asked for.
 */
import type { Backend, BackendContext, BackendDefinition, Drift } from '../../backends/backend.ts'
import { builtinBackends, createRegistry } from '../../backends/backends.ts'
import { findProgram } from '../../backends/engine/validate.ts'
import { toMoleculeError } from '../../errors.ts'
import type { Finding } from './finding.ts'
import {
  claudePayer,
  codexPayer,
  type Environment,
  geminiPayer,
  hermesPayer,
  openclawPayer,
  opencodePayer,
  type Payer,
} from './payers.ts'
import { type Probed, probe } from './probe.ts'

interface AgentCli {
  /** The program. */
  readonly bin: string
  /** The backend that drives it. */
  readonly backend: string
  readonly payer: Payer
  readonly install: string
  readonly login: string
}

const AGENT_CLIS: readonly AgentCli[] = [
  {
    bin: 'claude',
    backend: 'claude-code',
    payer: claudePayer,
    install: 'npm install -g @anthropic-ai/claude-code',
    login: 'run "claude" and log in, or set ANTHROPIC_API_KEY',
  },
  {
    bin: 'codex',
    backend: 'codex',
    payer: codexPayer,
    install: 'npm install -g @openai/codex',
    login: 'run "codex login", or set CODEX_API_KEY',
  },
  {
    bin: 'gemini',
    backend: 'gemini',
    payer: geminiPayer,
    install: 'npm install -g @google/gemini-cli',
    login: 'run "gemini" and log in, or set GEMINI_API_KEY',
  },
  {
    bin: 'opencode',
    backend: 'opencode',
    payer: opencodePayer,
    install: 'npm install -g opencode-ai',
    login: 'run "opencode auth login"',
  },
  {
    bin: 'hermes',
    backend: 'hermes',
    payer: hermesPayer,
    install: 'see https://hermes-agent.nousresearch.com',
    login: 'run "hermes setup"',
  },
  {
    bin: 'openclaw',
    backend: 'openclaw',
    payer: openclawPayer,
    install: 'npm install -g openclaw',
    login: 'run "openclaw onboard"',
  },
]

const VALIDATE_MS_MAX = 60_000
/** Two looks where the first finds that a way is gone. */
const PROBE_MS_MAX = 120_000

export interface AgentExam {
  readonly env: Environment
  readonly context: BackendContext
  /** Also one real turn of each, which asks its model. */
  readonly probes: boolean
  readonly signal: AbortSignal
}

export async function examineAgents(exam: AgentExam): Promise<Finding[]> {
  return await Promise.all(AGENT_CLIS.map((cli) => examine(cli, exam)))
}

/** Those that are on PATH, with the backend that runs each. */
export async function agentsHere(env: Environment): Promise<{ readonly bin: string; readonly backend: string }[]> {
  const looked = await Promise.all(AGENT_CLIS.map(async (cli) => ({ cli, isHere: await isHere(cli, env) })))
  return looked.filter(({ isHere: is }) => is).map(({ cli }) => cli)
}

const isHere = async ({ bin }: AgentCli, env: Environment): Promise<boolean> =>
  (await findProgram(bin, env['PATH'] ?? '')).path !== undefined

async function examine(cli: AgentCli, exam: AgentExam): Promise<Finding> {
  const about = { area: 'agents', name: cli.bin }
  const { env, context } = exam
  if (!(await isHere(cli, env))) return { ...about, verdict: 'note', text: 'not installed', remedy: cli.install }
  const registry = createRegistry(builtinBackends)
  const backend = registry.build(cli.backend, {}, context)
  try {
    return { ...about, ...(await look(cli, { ...exam, backend, definition: registry.get(cli.backend) })) }
  } finally {
    await backend.close()
  }
}

interface Look extends AgentExam {
  /** As a workspace of it would be run. */
  readonly backend: Backend
  readonly definition: BackendDefinition
}

type Found = Pick<Finding, 'verdict' | 'text' | 'remedy'>

async function look(cli: AgentCli, { backend, definition, env, probes, signal }: Look): Promise<Found> {
  const valid = await backend.validate(within(VALIDATE_MS_MAX, signal))
  if (!valid.ok) return { verdict: 'broken', text: valid.problem, remedy: valid.remedy }
  const version = valid.version ?? 'unknown version'
  const { tested } = definition
  const title = tested === undefined || tested === version ? version : `${version} (tested: ${tested})`
  const speech = await listen(backend, signal)
  const last = tested === undefined ? cli.install : `${cli.install}@${tested}`
  if (speech.verdict === 'broken') return { verdict: 'broken', text: `${title}: ${speech.text}`, remedy: last }
  const probed = probes ? await probe(backend, signal) : undefined
  if (probed?.understood === false) {
    return { verdict: 'broken', text: `${title}: ${speech.text}; ${probed.text}`, remedy: last }
  }
  const paid = payment(cli, env, probed)
  const text = `${title}: ${speech.text}; ${paid.text}`
  const remedy = paid.remedy ?? (speech.verdict === 'note' ? last : undefined)
  return { verdict: remedy === undefined ? 'ok' : 'note', text, ...(remedy !== undefined && { remedy }) }
}

const within = (ms: number, signal: AbortSignal) => AbortSignal.any([signal, AbortSignal.timeout(ms)])

/** Whether it still speaks as its backend expects; what could not be told is worth knowing and breaks nothing. */
async function listen(backend: Backend, signal: AbortSignal): Promise<Found> {
  try {
    const drifts = (await backend.probe?.(within(PROBE_MS_MAX, signal))) ?? []
    if (drifts.length === 0) return { verdict: 'ok', text: 'speaks as expected' }
    const isBroken = drifts.some(({ instead }) => instead === undefined)
    return { verdict: isBroken ? 'broken' : 'note', text: drifts.map(inWords).join('; ') }
  } catch (thrown) {
    return { verdict: 'note', text: `how it speaks could not be tried (${toMoleculeError(thrown).message})` }
  }
}

const inWords = ({ missing, instead }: Drift): string => `${missing}, ${instead ?? 'its turns fail'}`

function payment(cli: AgentCli, env: Environment, probed: Probed | undefined): { text: string; remedy?: string } {
  const payer = cli.payer(env)
  if (probed?.loggedIn === false) return { text: probed.text, remedy: cli.login }
  if (payer !== undefined) return { text: `${probed === undefined ? '' : `${probed.text}; `}${payer} pays` }
  // It answered: where its credentials are is its own affair.
  if (probed?.loggedIn) return { text: `${probed.text}; its own settings say who pays` }
  return { text: 'no log-in found', remedy: cli.login }
}
