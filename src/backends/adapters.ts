/**
 * Backends that others wrote: each folder of `<data-dir>/adapters` that exports one is registered at start, beside those
 * of the house. Their code runs in this process with all of its rights, so a folder that others may write is refused.
 * Invariant: what is wrong with one adapter is said with its name, and keeps no other and no workspace from working.
 */
import { type Dirent, existsSync } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type ErrorCode, MoleculeError } from '../errors.ts'
import type { Log } from '../log.ts'
import { isJsonObject } from '../protocol/json.ts'
import type { Backend, BackendDefinition, BackendEvent } from './backend.ts'

const ADAPTERS_MAX = 100
const SETUP_MS_MAX = 30_000
/** Everybody on the machine may write; a group of one's own is the rule on many systems, and is left alone. */
const WRITABLE_BY_OTHERS = 0o002

export interface LoadAdaptersOptions {
  /** `<data-dir>/adapters`; it need not be there. */
  readonly dir: string
  /** Names that are taken. */
  readonly taken: readonly string[]
  readonly log: Log
}

/** Reported and skipped: what is broken, what has a name that is taken. Sorted by folder, so that the first one wins. */
export async function loadAdapters({ dir, taken, log }: LoadAdaptersOptions): Promise<readonly BackendDefinition[]> {
  const loaded: BackendDefinition[] = []
  for (const folder of await listFolders(dir)) {
    try {
      const definition = await loadAdapter(join(dir, folder), log)
      const names = [...taken, ...loaded.map(({ name }) => name)]
      if (names.includes(definition.name)) throw new Error(`the name "${definition.name}" is taken`)
      loaded.push(definition)
      log.info({ adapter: folder, backend: definition.name }, 'an adapter is registered')
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      log.error({ adapter: folder, err: error }, `adapter "${folder}" is skipped: ${reason}`)
    }
  }
  return loaded
}

async function listFolders(dir: string): Promise<string[]> {
  if (!existsSync(dir)) return []
  const entries: Dirent[] = await readdir(dir, { withFileTypes: true })
  const folders = entries.filter(
    (entry) => (entry.isDirectory() || entry.isSymbolicLink()) && !entry.name.startsWith('.'),
  )
  return folders
    .map(({ name }) => name)
    .sort()
    .slice(0, ADAPTERS_MAX)
}

async function loadAdapter(path: string, log: Log): Promise<BackendDefinition> {
  const entry = join(path, await findEntryFile(path))
  for (const place of [path, entry]) await checkOwner(place)
  const module: unknown = await import(pathToFileURL(entry).href)
  const exported = isObject(module) ? (module['backend'] ?? module['default']) : undefined
  const definition = checkDefinition(exported)
  const setup = isObject(module) ? module['setup'] : undefined
  if (typeof setup === 'function') await runSetup(setup as Setup, log)
  return { ...definition, create: (options, context) => withOurErrors(definition.create(options, context)) }
}

/** As Node would find it: `exports`, `main`, or `index.js`. */
async function findEntryFile(path: string): Promise<string> {
  const file = join(path, 'package.json')
  if (!existsSync(file)) throw new Error('it has no package.json')
  const manifest: unknown = JSON.parse(await readFile(file, 'utf8'))
  if (!isJsonObject(manifest)) throw new Error('its package.json is no object')
  const { exports, main } = manifest
  const own = isJsonObject(exports) ? exports['.'] : exports
  const entry = isJsonObject(own) ? (own['import'] ?? own['default']) : own
  return [entry, main].find((one) => typeof one === 'string') ?? 'index.js'
}

async function checkOwner(path: string): Promise<void> {
  const { mode, uid } = await stat(path)
  const us = process.getuid?.()
  if (us === undefined) return
  if (uid !== us && uid !== 0) throw new Error(`${path} belongs to another user`)
  if ((mode & WRITABLE_BY_OTHERS) !== 0) throw new Error(`${path} can be written by others (chmod o-w)`)
}

function checkDefinition(exported: unknown): BackendDefinition {
  if (!isObject(exported)) throw new Error('it exports no backend: neither "backend" nor a default')
  const { name, summary, options, create } = exported
  if (typeof name !== 'string' || !/^[a-z][a-z0-9-]{0,63}$/.test(name)) {
    throw new Error('the name of its backend must be of small letters, digits and -')
  }
  if (typeof create !== 'function') throw new Error(`backend "${name}" has no factory: create must be a function`)
  if (!isObject(options)) throw new Error(`backend "${name}" does not say which options it reads`)
  if (typeof summary !== 'string') throw new Error(`backend "${name}" has no summary`)
  return exported as unknown as BackendDefinition
}

type Setup = (given: { readonly log: Log }) => unknown

/** Once, before anything of it is used; one that hangs must not keep the platform from starting. */
async function runSetup(setup: Setup, log: Log): Promise<void> {
  const late = Promise.withResolvers<never>()
  const words = `its setup was not done within ${SETUP_MS_MAX / 1000} s`
  const timer = setTimeout(() => late.reject(new Error(words)), SETUP_MS_MAX)
  try {
    await Promise.race([setup({ log }), late.promise])
  } finally {
    clearTimeout(timer)
  }
}

/** An adapter cannot have our class of errors, or has another copy of it: whatever it calls one is made ours. */
function withOurErrors(backend: Backend): Backend {
  const { name, stallMs } = backend
  return {
    name,
    ...(stallMs !== undefined && { stallMs }),
    validate: (signal) => backend.validate(signal),
    run: (turn, signal) => ourErrors(backend.run(turn, signal)),
    close: () => backend.close(),
  }
}

async function* ourErrors(events: AsyncIterable<BackendEvent>): AsyncGenerator<BackendEvent> {
  for await (const event of events) yield event.type === 'failed' ? { ...event, error: toOurError(event.error) } : event
}

function toOurError(error: unknown): MoleculeError {
  if (error instanceof MoleculeError) return error
  const { code, message, retryable, details } = (isObject(error) ? error : {}) as Partial<MoleculeError>
  return new MoleculeError(
    TURN_ERROR_CODES.find((known) => known === code) ?? 'agent_failed',
    message ?? String(error),
    {
      retryable: retryable === true,
      cause: error,
      ...(isJsonObject(details) && { details }),
    },
  )
}

/** Those with which a turn may end. */
const TURN_ERROR_CODES: readonly ErrorCode[] = [
  ...(['bad_config', 'backend_missing', 'spawn_failed', 'timeout', 'exit', 'empty_response', 'rate_limited'] as const),
  ...(['auth_failed', 'provider_failed', 'context_full', 'session_lost', 'agent_failed', 'max_turns'] as const),
  ...(['too_large', 'canceled'] as const),
]

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null
