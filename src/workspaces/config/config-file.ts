/**
 * Parses and changes the text of `config.yaml`, the settings of a workspace. A change keeps comments. Pure: no file
 * access. Every error is a `bad_config` that names the file and the line. Unknown keys are kept, because a template may
 * contain settings of other programs.
 */
import { Document, isMap, isNode, isScalar, LineCounter, parseDocument } from 'yaml'
import { z } from 'zod'
import { parseDuration } from '../../duration.ts'
import { MoleculeError } from '../../errors.ts'
import type { Json } from '../../protocol/a2a.ts'
import { COST_USD_MAX, isBudget } from '../../protocol/delegation.ts'
import '../../protocol/field-problems.ts'
import {
  ATTEMPTS_MAX,
  DEFAULT_TIER,
  isModelName,
  isPlainLine,
  MODEL_NAME_REASON,
  NAME_CHARACTERS_MAX,
  NO_SANDBOX_REASON,
  PLAIN_LINE_REASON,
  ROLE_CHARACTERS_MAX,
  SANDBOX_TIER,
  SHORT_TEXT_CHARACTERS_MAX,
  SLOTS_MAX,
} from '../workspace.ts'

export const WORKSPACE_CONFIG_FILE = 'config.yaml'
const TURNS_PER_HOUR_MAX = 1_000_000
/** A longer file is invalid: it is parsed on every change. */
const CONFIG_CHARACTERS_MAX = 256 * 1024
export const DEFAULT_RUNTIME = 'claude-code'
export const DEFAULT_SLOTS = 1
/** The first attempt and three retries. */
export const DEFAULT_ATTEMPTS = 4
export const DEFAULT_RATE_LIMIT_PATIENCE = '1h'
const RATE_LIMIT_PATIENCE_MS_MAX = 24 * 3600_000

export interface WorkspaceConfig {
  readonly name: string
  readonly role: string
  readonly runtime: string
  readonly model?: string
  readonly runtimeConfig: Readonly<Record<string, Json>>
  readonly maxAttempts: number
  readonly maxConcurrentTasks: number
  /** Takes effect at creation, and when an owner writes the file through the API. */
  readonly workingDir?: string
}

/** Null removes a key. */
export interface ConfigFileChange {
  readonly name?: string
  readonly role?: string
  readonly runtime?: string
  readonly model?: string | null
  /** Merged into the existing options, key by key. */
  readonly runtime_config?: Readonly<Record<string, Json>>
}

const shortText = z.string().trim().min(1).max(SHORT_TEXT_CHARACTERS_MAX).refine(isPlainLine, PLAIN_LINE_REASON)
const modelName = shortText.refine(isModelName, MODEL_NAME_REASON)
/** A form sends numbers as text, and an empty field means no value. */
const wholeNumber = (max: number) =>
  z.preprocess((value) => {
    if (value === null || value === '') return undefined
    return typeof value === 'string' ? Number(value) : value
  }, z.int().min(1).max(max).optional())

/** An amount of US dollars. */
const amount = z.preprocess((value) => {
  if (value === null || value === '') return undefined
  return typeof value === 'string' ? Number(value) : value
}, z.number().refine(isBudget, `must be a number above 0 and up to ${COST_USD_MAX}`).optional())

/** A number is seconds, as in the options of a backend. */
const patience = z.preprocess(
  (value) => {
    if (value === null || value === '') return undefined
    return typeof value === 'number' ? `${value}s` : value
  },
  z
    .string()
    .refine((text) => {
      const ms = parseDuration(text)
      return ms !== undefined && ms >= 0 && ms <= RATE_LIMIT_PATIENCE_MS_MAX
    }, 'must be a duration from 0s to 24h, such as 30m')
    .optional(),
)

/** A form sends a text. */
const flag = z.preprocess((value) => {
  if (value === null || value === '') return undefined
  return value === 'true' || value === 'false' ? value === 'true' : value
}, z.boolean().optional())

export const configSchema = z.looseObject({
  name: z.string().trim().min(1).max(NAME_CHARACTERS_MAX).refine(isPlainLine, PLAIN_LINE_REASON),
  role: z.string().max(ROLE_CHARACTERS_MAX).nullish(),
  runtime: shortText.nullish(),
  model: modelName.nullish(),
  tier: z
    .literal(DEFAULT_TIER, { error: ({ input }) => (input === SANDBOX_TIER ? NO_SANDBOX_REASON : 'must be 2') })
    .nullish(),
  working_dir: z.string().nullish(),
  runtime_config: z.record(z.string(), z.json()).nullish(),
})

export const platformKeysSchema = z.looseObject({
  max_attempts: wholeNumber(ATTEMPTS_MAX),
  max_cost_usd_per_day: amount,
  max_concurrent_tasks: wholeNumber(SLOTS_MAX),
  max_turns_per_hour: wholeNumber(TURNS_PER_HOUR_MAX),
  model: z
    .string()
    .max(SHORT_TEXT_CHARACTERS_MAX)
    .refine(isPlainLine, PLAIN_LINE_REASON)
    .refine(isModelName, MODEL_NAME_REASON)
    .nullish(),
  rate_limit_patience: patience,
  team_memory: flag,
  working_dir: z.string().nullish(),
})

/** Of a `runtime_config` that was checked before. */
export function rateLimitPatienceMs(runtimeConfig: Readonly<Record<string, Json>>): number {
  const { data } = patience.safeParse(runtimeConfig['rate_limit_patience'])
  return Math.ceil(parseDuration(data ?? DEFAULT_RATE_LIMIT_PATIENCE) ?? 0)
}

/** Of a `runtime_config` that was checked before; undefined without a budget. */
export const costUsdPerDayMax = (runtimeConfig: Readonly<Record<string, Json>>): number | undefined =>
  amount.safeParse(runtimeConfig['max_cost_usd_per_day']).data

/** Of a `runtime_config` that was checked before: whether the workspace is given the memories of its team. */
export const usesTeamMemory = (runtimeConfig: Readonly<Record<string, Json>>): boolean =>
  flag.safeParse(runtimeConfig['team_memory']).data !== false

/**
 * Keys of `runtime_config` that only the platform reads. They are not passed to the backend, so that a change of one
 * does not replace the backend. `model` is passed on; `turn-limit.ts` takes `max_turns_per_hour` out itself.
 */
export const PLATFORM_ONLY_KEYS: ReadonlySet<string> = new Set([
  'max_attempts',
  'max_concurrent_tasks',
  'max_cost_usd_per_day',
  'rate_limit_patience',
  'team_memory',
  'working_dir',
])

/** Throws `bad_config` with the file and the line. */
export function parseConfig(text: string, path: string): WorkspaceConfig {
  const { document, lines } = parseYaml(text, path)
  const parsed = configSchema.safeParse(toValues(document, path))
  if (!parsed.success) throw schemaError({ document, lines, path }, parsed.error, [])
  const { name, role, runtime, model, runtime_config: runtimeConfig, working_dir: workingDir } = parsed.data
  const own = platformKeysSchema.safeParse(runtimeConfig ?? {})
  if (!own.success) throw schemaError({ document, lines, path }, own.error, ['runtime_config'])
  const folder = workingDir ?? own.data.working_dir
  return {
    name,
    role: role ?? '',
    runtime: runtime ?? DEFAULT_RUNTIME,
    runtimeConfig: runtimeConfig ?? {},
    maxAttempts: own.data.max_attempts ?? DEFAULT_ATTEMPTS,
    maxConcurrentTasks: own.data.max_concurrent_tasks ?? DEFAULT_SLOTS,
    ...(typeof model === 'string' && { model }),
    ...(typeof folder === 'string' && folder !== '' && { workingDir: folder }),
  }
}

/** One sentence for each key that stands beside the known ones: it is kept, for other programs, and changes nothing here. */
export function ignoredKeyWarnings(text: string): string[] {
  const { contents } = parseDocument(text)
  const keys = isMap(contents) ? contents.items.map(({ key }) => (isScalar(key) ? String(key.value) : '')) : []
  return keys
    .filter((key) => key !== '' && !Object.hasOwn(configSchema.shape, key))
    .slice(0, PROBLEMS_MAX)
    .map((key) => `the key ${JSON.stringify(key)} is ignored at this place; settings stand under runtime_config`)
}

/** Returns the changed text, with its comments and other keys. `path` is for error messages. */
export function changeConfig(text: string | undefined, change: ConfigFileChange, path: string): string {
  const document = text === undefined ? new Document({}) : parseYaml(text, path).document
  const { contents } = document
  const isEmpty = contents === null || (isScalar(contents) && contents.value === null)
  if (isEmpty) document.contents = document.createNode({}) as never
  else if (!isMap(contents)) throw badConfig(path, [{ ...START, message: 'it must be a map of settings' }])
  for (const key of ['name', 'role', 'runtime', 'model'] as const) {
    const value = change[key]
    if (value === null) document.delete(key)
    else if (value !== undefined) document.set(key, value)
  }
  changeOptions(document, change.runtime_config ?? {})
  return document.toString({ lineWidth: 0 })
}

function changeOptions(document: Document, options: Readonly<Record<string, Json>>): void {
  // `runtime_config:` without a value, or with a value that is not a map, cannot hold a key.
  const hasOptions = isMap(document.get('runtime_config', true))
  if (!hasOptions && Object.keys(options).length > 0) document.set('runtime_config', document.createNode({}))
  for (const [key, value] of Object.entries(options)) {
    const at = ['runtime_config', key]
    if (value !== null) document.setIn(at, document.createNode(value))
    else if (document.hasIn(at)) document.deleteIn(at)
  }
}

/** One thing that is wrong in a `config.yaml`, and where. Line and column count from 1. */
export interface ConfigProblem {
  readonly line: number
  readonly column: number
  readonly message: string
}

/** A problem that is found elsewhere, such as an unknown runtime, at the place of its key. */
export function configErrorAt(
  text: string,
  path: string,
  { at, message, cause }: { at: readonly string[]; message: string; cause?: unknown },
): MoleculeError {
  const lines = new LineCounter()
  const place = placeOf(parseDocument(text, { lineCounter: lines }), lines, at)
  return badConfig(path, [{ ...place, message }], cause)
}

interface ParsedYaml {
  readonly document: Document
  readonly lines: LineCounter
}

const START = { line: 1, column: 1 }
/** Problems that an error lists: the first ones are the ones to mend. */
const PROBLEMS_MAX = 50

function parseYaml(text: string, path: string): ParsedYaml {
  if (text.length > CONFIG_CHARACTERS_MAX)
    throw badConfig(path, [{ ...START, message: `it is longer than ${CONFIG_CHARACTERS_MAX} characters` }])
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines })
  if (document.errors.length === 0) return { document, lines }
  const problems = document.errors.map(({ linePos, message, code }) => {
    const { line, col: column } = linePos?.[0] ?? { line: 1, col: 1 }
    return { line, column, message: message.split(' at line ')[0] ?? code }
  })
  throw badConfig(path, problems, document.errors[0])
}

function toValues(document: Document, path: string): unknown {
  try {
    return document.toJS() ?? {}
  } catch (cause) {
    // A few lines of nested aliases can expand to gigabytes; the parser refuses them.
    const message = cause instanceof Error ? cause.message : String(cause)
    throw badConfig(path, [{ ...START, message }], cause)
  }
}

function schemaError(
  { document, lines, path }: ParsedYaml & { path: string },
  error: z.ZodError,
  under: string[],
): MoleculeError {
  const problems = error.issues.map((issue) => {
    const at = [...under, ...issue.path.map(String)]
    const message = at.length === 0 ? 'it must be a map of settings' : `${at.join('.')}: ${issue.message}`
    return { ...placeOf(document, lines, at), message }
  })
  return badConfig(path, problems)
}

/** The place of the key's value, or of its nearest parent in the file. */
function placeOf(document: Document, lines: LineCounter, at: readonly string[]): Omit<ConfigProblem, 'message'> {
  for (let depth = at.length; depth > 0; depth--) {
    const node = document.getIn(at.slice(0, depth), true)
    if (!isNode(node) || !node.range) continue
    const { line, col: column } = lines.linePos(node.range[0])
    return { line, column }
  }
  return START
}

/** The message has the first problem; `problems` has all of them. */
function badConfig(path: string, problems: readonly ConfigProblem[], cause?: unknown): MoleculeError {
  const { line, message } = problems[0] ?? { ...START, message: 'invalid' }
  const source = `${path}:${line}`
  const details = { source, problems: problems.slice(0, PROBLEMS_MAX) }
  return new MoleculeError('bad_config', `${source}: ${message}`, { cause, details })
}
