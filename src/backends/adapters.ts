/**
 * Adapters: backends of other authors. At start, each folder of `<data-dir>/adapters` that exports a backend is
 * registered beside the built-in ones. Its code runs in this process with all rights, so a folder that other users may
 * write is refused. Invariant: a broken adapter is logged with its name and breaks no other adapter and no workspace.
 */
import { type Dirent, existsSync } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type ErrorCode, MoleculeError } from '../errors.ts'
import type { Log } from '../log.ts'
import { isJsonObject } from '../protocol/json.ts'
import type { Backend, BackendDefinition, BackendEvent } from './backend.ts'

/** Further folders are ignored. */
const ADAPTERS_MAX = 100
const SETUP_MS_MAX = 30_000
/** Every user of the machine may write. Group write is allowed: on many systems each user has a group of their own. */
const WRITABLE_BY_OTHERS = 0o002

export interface LoadAdaptersOptions {
  /** `<data-dir>/adapters`; it may be missing. */
  readonly dir: string
  /** Names of the built-in backends. */
  readonly taken: readonly string[]
  readonly log: Log
}

export interface LoadedAdapter {
  /** The name of its folder. */
  readonly adapter: string
  readonly definition: BackendDefinition
}

/** Logs and skips an adapter that is broken or whose name is taken. In order of folder names: the first one wins. */
export async function loadAdapters({ dir, taken, log }: LoadAdaptersOptions): Promise<readonly LoadedAdapter[]> {
  const loaded: LoadedAdapter[] = []
  for (const folder of await listAdapterFolders(dir)) {
    try {
      const definition = await loadAdapter(join(dir, folder), log)
      const names = [...taken, ...loaded.map((other) => other.definition.name)]
      if (names.includes(definition.name)) throw new Error(`the name "${definition.name}" is taken`)
      loaded.push({ adapter: folder, definition })
      log.info({ adapter: folder, backend: definition.name }, 'an adapter is registered')
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      log.error({ adapter: folder, err: error }, `adapter "${folder}" is skipped: ${reason}`)
    }
  }
  return loaded
}

/** Folders and links to folders, sorted by name. */
export async function listAdapterFolders(dir: string): Promise<string[]> {
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
  for (const checked of [path, entry]) await checkOwner(checked)
  const module: unknown = await import(pathToFileURL(entry).href)
  const exported = isObject(module) ? (module['backend'] ?? module['default']) : undefined
  const definition = checkDefinition(exported)
  const setup = isObject(module) ? module['setup'] : undefined
  if (typeof setup === 'function') await runSetup(setup as (options: { log: Log }) => unknown, log)
  return { ...definition, create: (options, context) => withOurErrors(definition.create(options, context)) }
}

/** As Node finds it: `exports`, `main`, or `index.js`. */
async function findEntryFile(path: string): Promise<string> {
  const file = join(path, 'package.json')
  if (!existsSync(file)) throw new Error('it has no package.json')
  const manifest: unknown = JSON.parse(await readFile(file, 'utf8'))
  if (!isJsonObject(manifest)) throw new Error('its package.json is not a JSON object')
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
  if ((mode & WRITABLE_BY_OTHERS) !== 0) throw new Error(`${path} can be written by every user (chmod o-w)`)
}

function checkDefinition(exported: unknown): BackendDefinition {
  if (!isObject(exported)) throw new Error('it exports no backend: neither "backend" nor a default export')
  const { name, summary, options, create } = exported
  if (typeof name !== 'string' || !/^[a-z][a-z0-9-]{0,63}$/.test(name)) {
    throw new Error('the name of its backend must consist of lowercase letters, digits and -')
  }
  if (typeof create !== 'function') throw new Error(`backend "${name}" has no factory: create must be a function`)
  if (!isObject(options)) throw new Error(`backend "${name}" has no options: it must list the options that it reads`)
  if (typeof summary !== 'string') throw new Error(`backend "${name}" has no summary`)
  return exported as unknown as BackendDefinition
}

/** Runs once, before the adapter is used. Without the timeout, a setup that hangs would stop the platform's start. */
async function runSetup(setup: (options: { log: Log }) => unknown, log: Log): Promise<void> {
  const late = Promise.withResolvers<never>()
  const message = `its setup did not finish within ${SETUP_MS_MAX / 1000} s`
  const timer = setTimeout(() => late.reject(new Error(message)), SETUP_MS_MAX)
  try {
    await Promise.race([setup({ log }), late.promise])
  } finally {
    clearTimeout(timer)
  }
}

/** An adapter has no MoleculeError, or another copy of the class, so each of its errors is converted. */
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
      // An adapter that says `agent_failed` writes for the caller. An error without a code may be anything.
      details: { ...(isJsonObject(details) && details), ...(code === 'agent_failed' && { forCaller: true }) },
    },
  )
}

/** The codes that an adapter may give the end of a turn. Any other code becomes `agent_failed`. */
const TURN_ERROR_CODES: readonly ErrorCode[] = [
  ...(['bad_config', 'backend_missing', 'spawn_failed', 'timeout', 'exit', 'empty_response', 'rate_limited'] as const),
  'unreadable_output',
  ...(['auth_failed', 'provider_failed', 'context_full', 'session_lost', 'agent_failed', 'max_turns'] as const),
  ...(['quota_exhausted', 'overloaded', 'provider_unreachable', 'unknown_model', 'bad_request'] as const),
  ...(['too_large', 'canceled'] as const),
]

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null
