/**
 * The agents of this machine for `GET /agents`: whether each is installed, its version and its log-in, as `doctor` finds
 * them. Starting a program for its version takes up to seconds, so a version is kept until the program's file changes,
 * and a list that would wait longer leaves it out.
 */
import { realpath, stat } from 'node:fs/promises'
import type { BackendContext, BackendDefinition, Validation } from '../../backends/backend.ts'
import { builtinBackends, createBackendRegistry } from '../../backends/backends.ts'
import { findProgram } from '../../backends/engine/probe/validate-cli.ts'
import type { FoundAgent, FoundAgents } from '../../doors/http/routes/route.ts'
import { toMoleculeError } from '../../errors.ts'
import { abortableOr } from '../../wait.ts'
import type { Environment } from '../terminal/terminal.ts'
import { AGENT_CLIS, type AgentCli, loginRemedy, VALIDATE_TIMEOUT_MS } from './agent-clis.ts'

/** A list is kept this long; a log-in shows after it. */
const LIST_KEPT_MS = 3000
/** How long a list waits for versions that are not known yet. */
const VERSIONS_WAIT_MS_MAX = 4000

export interface FoundAgentsOptions {
  readonly env: Environment
  readonly context: BackendContext
}

export function createFoundAgents(options: FoundAgentsOptions): FoundAgents {
  const { clock } = options.context
  const validations = new Map<string, KnownValidation>()
  let listed: { readonly agents: Promise<readonly FoundAgent[]>; readonly atMs: number } | undefined
  const findAll = () => Promise.all(AGENT_CLIS.map((cli) => findAgent(cli, validations, options)))
  return {
    list() {
      if (listed === undefined || clock.monotonicMs() - listed.atMs > LIST_KEPT_MS) {
        listed = { agents: findAll(), atMs: clock.monotonicMs() }
      }
      return listed.agents
    },
  }
}

/** The result for one file of a program. */
interface KnownValidation {
  readonly stamp: string
  readonly running: Promise<Validation>
}

async function findAgent(
  cli: AgentCli,
  validations: Map<string, KnownValidation>,
  { env, context }: FoundAgentsOptions,
): Promise<FoundAgent> {
  const { bin: program, backend } = cli
  const definition = createBackendRegistry(builtinBackends).get(backend)
  const pays = cli.payer(env)
  const isLoggedIn = pays !== undefined
  const isWarm = isKeptWarm(definition)
  const found = { backend, program, isLoggedIn, isKeptWarm: isWarm, ...(isLoggedIn && { pays }) }
  const { path } = await findProgram(program, env['PATH'] ?? '')
  if (path === undefined) return { ...found, remedy: cli.install }
  const stamp = await stampOf(path)
  const known = validations.get(backend)
  const validation = known?.stamp === stamp ? known : { stamp, running: validate(backend, context) }
  validations.set(backend, validation)
  const result = await abortableOr(validation.running, AbortSignal.timeout(VERSIONS_WAIT_MS_MAX), undefined)
  if (result?.ok === false) return { ...found, path, problem: result.problem, remedy: result.remedy }
  return {
    ...found,
    path,
    ...(result?.version !== undefined && { version: result.version }),
    ...(!isLoggedIn && { remedy: loginRemedy(cli, env) }),
  }
}

const isKeptWarm = ({ options }: BackendDefinition): boolean => Object.hasOwn(options, 'warm_idle')

async function stampOf(path: string): Promise<string> {
  const target = await realpath(path)
  const { mtimeMs, size } = await stat(target)
  return `${target} ${mtimeMs} ${size}`
}

async function validate(name: string, context: BackendContext): Promise<Validation> {
  const backend = createBackendRegistry(builtinBackends).build(name, {}, context)
  try {
    return await backend.validate(AbortSignal.timeout(VALIDATE_TIMEOUT_MS))
  } catch (thrown) {
    return { ok: false, problem: toMoleculeError(thrown).message, remedy: 'run it by hand to see the problem' }
  } finally {
    await backend.close()
  }
}
