/**
 * The file of a team: its name and its workspaces with their prompts and schedules. Parses and checks the text before anything is
 * sent to the platform. Every problem names the file and the line; unknown keys are refused, because a typo that is
 * silently dropped is found weeks later. Pure: no file access.
 */
import { z } from 'zod'
import { newScheduleSchema } from '../../api/schedules.ts'
import { newWorkspaceSchema } from '../../api/workspaces.ts'
import { longBackendName } from '../../backends/backends.ts'
import { toMoleculeError } from '../../errors.ts'
import { COST_USD_MAX, isBudget } from '../../protocol/delegation.ts'
import { safeParse } from '../../protocol/schemas.ts'
import { DEFAULT_ATTEMPTS, DEFAULT_RUNTIME, DEFAULT_SLOTS } from '../../workspaces/config/config-file.ts'
import { firstTime } from '../../workspaces/schedules.ts'
import { didYouMean } from '../terminal/near-misses.ts'
import { readYaml, replaceVariables, valuesOf, type YamlPath, type YamlSource } from './read-yaml.ts'

/** The files of a workspace's folder that a team file may contain. The agent itself writes `MEMORY.md`. */
export const PROMPT_FILES = ['system-prompt.md', 'IDENTITY.md', 'USER.md'] as const

export type PromptFile = (typeof PROMPT_FILES)[number]

/** At the limit the file is refused. */
const TEAM_WORKSPACES_MAX = 1000

export interface TeamFile {
  readonly team: string
  readonly workspaces: readonly TeamWorkspace[]
}

/** A workspace as the file wants it: a setting that the file leaves out has its default. */
export interface TeamWorkspace {
  readonly name: string
  readonly role: string
  readonly runtime: string
  readonly model?: string
  /** The name of a workspace of the file, or the name or id of another one of the platform. */
  readonly parent?: string
  readonly permission?: string
  readonly maxConcurrentTasks: number
  readonly maxAttempts: number
  /** Absent: it stays as it is. */
  readonly workingDir?: string
  readonly runtimeConfig: Readonly<Record<string, unknown>>
  /** Null removes the file. A file that is not named stays as it is. */
  readonly prompts: Readonly<Partial<Record<PromptFile, string | null | undefined>>>
  readonly schedules: readonly TeamSchedule[]
  /** `team.yaml:12`: where the workspace or one of its keys stands. */
  at(...keys: readonly string[]): string
}

/** A schedule as the file wants it. Whether it is paused, and its webhook, stay as they are. */
export interface TeamSchedule extends z.output<typeof scheduleSchema> {
  readonly name: string
}

const scheduleSchema = newScheduleSchema.omit({ name: true, webhook: true, team: true })

const prompt = z.string().nullable().optional()

/** Keys of `runtime_config` in `config.yaml` that have their own place in a team file. */
export const OWN_KEYS: readonly string[] = ['max_attempts', 'max_concurrent_tasks', 'working_dir']

/** The keys of `budgets`. On the platform they are keys of `runtime_config`. */
export const BUDGET_KEYS = ['max_cost_usd_per_day'] as const

const budget = z.number().refine(isBudget, `must be a number above 0 and up to ${COST_USD_MAX}`).optional()
const budgetsSchema = z.strictObject({ max_cost_usd_per_day: budget })

const workspaceSchema = newWorkspaceSchema
  .pick({
    role: true,
    runtime: true,
    model: true,
    permission: true,
    max_concurrent_tasks: true,
    max_attempts: true,
    working_dir: true,
    runtime_config: true,
  })
  .extend({
    parent: newWorkspaceSchema.shape.name.optional(),
    prompts: z.strictObject({ 'system-prompt.md': prompt, 'IDENTITY.md': prompt, 'USER.md': prompt }).optional(),
    schedules: z.record(newWorkspaceSchema.shape.name, scheduleSchema).optional(),
    budgets: budgetsSchema.optional(),
  })

const teamSchema = z.strictObject({
  team: newWorkspaceSchema.shape.team.unwrap(),
  variables: z.unknown().optional(),
  workspaces: z.record(z.string(), z.unknown()),
})

/** Throws `bad_config` with every problem, each with its line. */
export async function parseTeamFile(
  text: string,
  file: string,
  variables: ReadonlyMap<string, string>,
): Promise<TeamFile> {
  const source = readYaml(text, file)
  replaceVariables(source, variables)
  source.requireNoProblems()
  const parsed = check(teamSchema, valuesOf(source), { source, path: [] })
  source.requireNoProblems()
  const { team, workspaces } = parsed as z.output<typeof teamSchema>
  const entries = Object.entries(workspaces)
  if (entries.length > TEAM_WORKSPACES_MAX) source.report(['workspaces'], `more than ${TEAM_WORKSPACES_MAX} workspaces`)
  const read = entries.flatMap(([name, value]) => readWorkspace(name, value, source) ?? [])
  reportCycles(read, source)
  await reportTimes(read, source)
  source.requireNoProblems()
  return { team, workspaces: read }
}

function readWorkspace(name: string, value: unknown, source: YamlSource): TeamWorkspace | undefined {
  const path = ['workspaces', name]
  const plainName = check(newWorkspaceSchema.shape.name, name, { source, path })
  if (plainName !== undefined && plainName !== name) source.report(path, 'the name begins or ends with a space')
  const settings = check(workspaceSchema, withoutNullBudgets(withoutNulls(value)), { source, path })
  if (settings === undefined) return undefined
  for (const key of OWN_KEYS) {
    if (settings.runtime_config?.[key] === undefined) continue
    source.report([...path, 'runtime_config', key], `write ${key} beside runtime_config, not in it`)
  }
  for (const key of BUDGET_KEYS) {
    if (settings.runtime_config?.[key] === undefined) continue
    source.report([...path, 'runtime_config', key], `write ${key} under budgets, not in runtime_config`)
  }
  const { role = '', runtime = DEFAULT_RUNTIME, model, parent, permission, working_dir: workingDir } = settings
  return {
    name,
    role,
    runtime: longBackendName(runtime),
    ...(model !== undefined && { model }),
    ...(parent !== undefined && { parent }),
    ...(permission !== undefined && { permission }),
    ...(workingDir !== undefined && { workingDir }),
    maxConcurrentTasks: settings.max_concurrent_tasks ?? DEFAULT_SLOTS,
    maxAttempts: settings.max_attempts ?? DEFAULT_ATTEMPTS,
    runtimeConfig: withoutNulls({ ...settings.runtime_config, ...settings.budgets }) as Record<string, unknown>,
    prompts: settings.prompts ?? {},
    schedules: Object.entries(settings.schedules ?? {}).map(([schedule, fields]) => ({ ...fields, name: schedule })),
    at: (...keys) => source.at([...path, ...keys]),
  }
}

/** `role:` without a value counts as left out. */
function withoutNulls(value: unknown): unknown {
  if (value === null) return {}
  if (typeof value !== 'object' || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null))
}

/** `max_cost_usd_per_day:` without a value is no budget. */
function withoutNullBudgets(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('budgets' in value)) return value
  return { ...value, budgets: withoutNulls(value.budgets) }
}

/** The checked value; undefined where problems were reported. */
function check<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  { source, path: under }: { readonly source: YamlSource; readonly path: YamlPath },
): z.output<Schema> | undefined {
  const { success, data, error } = safeParse(schema, value)
  if (success) return data
  for (const issue of error.issues) {
    const path = [...under, ...issue.path.map(String)]
    if (issue.code !== 'unrecognized_keys') {
      source.report(
        path,
        path.length === 0 ? 'it must be a map with team and workspaces' : `${path.join('.')}: ${issue.message}`,
      )
      continue
    }
    const known = knownKeysAt(path)
    for (const key of issue.keys) {
      const advice = didYouMean(key, known) || `; the keys are ${known.join(', ')}`
      source.report([...path, key], `${[...path, key].join('.')}: there is no such key${advice}`)
    }
  }
  return undefined
}

function knownKeysAt(path: YamlPath): string[] {
  if (path.length === 0) return Object.keys(teamSchema.shape)
  if (path[2] === 'budgets' && path.length === 3) return [...BUDGET_KEYS]
  if (path[2] === 'schedules' && path.length === 4) return Object.keys(scheduleSchema.shape)
  return path.at(-1) === 'prompts' && path.length === 3 ? [...PROMPT_FILES] : Object.keys(workspaceSchema.shape)
}

/** Reports each cycle of parents once, at its first workspace in the file. */
function reportCycles(workspaces: readonly TeamWorkspace[], source: YamlSource): void {
  const parents = new Map(workspaces.map(({ name, parent }) => [name, parent]))
  const reported = new Set<string>()
  for (const { name } of workspaces) {
    const chain = [name]
    for (let above = parents.get(name); above !== undefined && chain.length <= workspaces.length; ) {
      chain.push(above)
      if (above === name) break
      above = parents.get(above)
    }
    if (chain.length < 2 || chain.at(-1) !== name || reported.has(name)) continue
    for (const member of chain) reported.add(member)
    source.report(['workspaces', name, 'parent'], `a cycle of parents: ${chain.join(' -> ')}`)
  }
}

/** Reports cron patterns and time zones that the platform would refuse. */
async function reportTimes(workspaces: readonly TeamWorkspace[], source: YamlSource): Promise<void> {
  for (const workspace of workspaces) {
    for (const { name, cron, time_zone: timeZone } of workspace.schedules) {
      try {
        await firstTime({ cron, timeZone }, Date.now())
      } catch (thrown) {
        const { message, details } = toMoleculeError(thrown)
        const path = ['workspaces', workspace.name, 'schedules', name, String(details['path'] ?? 'cron')]
        source.report(path, `${path.join('.')}: ${message}`)
      }
    }
  }
}
