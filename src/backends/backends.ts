/**
 * The list of backends and the registry made of it: the only place that turns a name (`runtime` of a workspace,
 * `--backend`) into a Backend. A plain typed list, no registration by import. A wrong entry fails at start.
 */
import { MoleculeError } from '../errors.ts'
import { a2a } from './a2a/a2a.ts'
import { acp } from './acp/acp.ts'
import type { Backend, BackendContext, BackendDefinition } from './backend.ts'
import { claudeCode } from './claude-code/claude-code.ts'
import { codex } from './codex/codex.ts'
import { exec } from './exec/exec.ts'
import { gemini } from './gemini/gemini.ts'
import { hermes } from './hermes/hermes.ts'
import { withHooks } from './hooks.ts'
import { mcp } from './mcp/mcp.ts'
import { mock } from './mock/mock.ts'
import { openai } from './openai/openai.ts'
import { openclaw } from './openclaw/openclaw.ts'
import { opencode } from './opencode/opencode.ts'
import { createOptions } from './options.ts'
import { withPeersAndOutbox } from './peers-and-outbox.ts'
import { stdio } from './stdio/stdio.ts'

/** Every backend that comes with Molecule. To add one, add a folder beside these and one entry here. */
export const builtinBackends: readonly BackendDefinition[] = [
  a2a,
  acp,
  claudeCode,
  codex,
  exec,
  gemini,
  hermes,
  mcp,
  mock,
  openai,
  openclaw,
  opencode,
  stdio,
]

export interface BackendRegistry {
  /** Sorted, as `--help` shows them. */
  names(): readonly string[]
  /** Throws for an unknown name; the error lists the known names, sorted. */
  get(name: string): BackendDefinition
  /** As `resolveBackendName`. Throws `backend_missing` with the reason for an adapter that could not be loaded. */
  resolve(name: string | undefined): string
  build(name: string, values: Readonly<Record<string, string>>, context: BackendContext): Backend
}

/** `broken`: adapters that could not be loaded, by the name of their folder, with the reason. */
export function createBackendRegistry(
  definitions: readonly BackendDefinition[],
  broken: ReadonlyMap<string, string> = new Map(),
): BackendRegistry {
  const byName = new Map<string, BackendDefinition>()
  for (const definition of definitions) {
    assertUsable(definition)
    if (byName.has(definition.name)) throw badConfig(`two backends are called "${definition.name}"`)
    byName.set(definition.name, definition)
  }
  const names = [...byName.keys()].sort()
  const notLoadedText = (name: string) => `the adapter "${name}" could not be loaded: ${broken.get(name)}`
  const get = (name: string): BackendDefinition => {
    const definition = byName.get(name)
    if (definition) return definition
    if (broken.has(name)) throw badConfig(notLoadedText(name), { name })
    throw badConfig(`unknown backend "${name}"; known: ${names.join(', ')}`, { name, known: names })
  }
  return {
    names: () => names,
    get,
    resolve(name) {
      const isBroken = name !== undefined && broken.has(name) && !byName.has(longBackendName(name))
      if (isBroken) throw new MoleculeError('backend_missing', notLoadedText(name), { details: { name } })
      return resolveBackendName(name, names)
    },
    build(name, values, context) {
      const definition = get(name)
      const options = createOptions(values)
      const backend = definition.create(options, context)
      const extended = definition.runsCommands === true ? withPeersAndOutbox(backend, context.log) : backend
      return withHooks(extended, options, context)
    },
  }
}

const DEFAULT_NAME = 'claude-code'
/** Short names for registered names. */
const SHORT_NAMES: Readonly<Record<string, string>> = { claude: 'claude-code' }

/** The registered name that a short name stands for; any other name stays as it is. */
export const longBackendName = (name: string): string =>
  (Object.hasOwn(SHORT_NAMES, name) ? SHORT_NAMES[name] : undefined) ?? name

/**
 * The backend that a name in `--backend` or in a setting means; undefined means the default. Any other name, also the
 * empty string, throws an error that lists the valid names. A caller that reads a variable checks first that it is set.
 */
export function resolveBackendName(name: string | undefined, registered: readonly string[]): string {
  if (name === undefined) return DEFAULT_NAME
  const resolved = longBackendName(name)
  if (registered.includes(resolved)) return resolved
  const valid = [...new Set([...registered, ...Object.keys(SHORT_NAMES)])].sort()
  throw badConfig(`unknown backend "${name}"; valid: ${valid.join(', ')}`, { name, known: valid })
}

/** The types require this already, but an adapter may be JavaScript that no compiler has checked. */
function assertUsable(definition: BackendDefinition): void {
  if (typeof definition.name !== 'string' || definition.name.trim() === '') throw badConfig('a backend has no name')
  if (typeof definition.create === 'function') return
  throw badConfig(`backend "${definition.name}" has no factory: \`create\` must be a function`)
}

function badConfig(message: string, details: Readonly<Record<string, unknown>> = {}): MoleculeError {
  return new MoleculeError('bad_config', message, { details })
}
