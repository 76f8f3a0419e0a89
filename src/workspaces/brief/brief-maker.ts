/**
 * Makes the brief of a leased message, after the lease has committed. The local runtime and the HTTP route for bridges
 * both call this function, so a bridge gets the same brief. It runs before every turn, so what rarely changes is
 * cached.
 */
import { isAbsolute, join } from 'node:path'
import { MoleculeError } from '../../errors.ts'
import { readNotes } from '../../inbox/brief-reads.ts'
import type { Brief } from '../../protocol/brief.ts'
import type { Store, Transaction } from '../../store/store.ts'
import { backendOptions } from '../config/backend-options.ts'
import { costUsdPerDayMax, PLATFORM_ONLY_KEYS, rateLimitPatienceMs } from '../config/config-file.ts'
import type { Homes } from '../homes/homes.ts'
import { fromStoredFolder } from '../homes/stored-folders.ts'
import { defaultWorkingDir, ensureWorkingDir } from '../homes/working-dir.ts'
import { oncePerTick } from '../once-per-tick.ts'
import { findSession, type SessionKey } from '../sessions.ts'
import type { BriefedBridge } from '../workspace.ts'
import type { WorkspaceConfigs } from '../workspace-configs.ts'
import { findSettings, parseSettings, type SettingsRow, type TurnSettings } from '../workspace-rows.ts'

export interface BriefMakerOptions {
  readonly store: Store
  readonly host: string
  readonly homes: Homes
  readonly configs: WorkspaceConfigs
  /** The environment variables for the child processes of a turn of that runtime. */
  readonly childEnvironment?: ChildEnvironment
}

export type ChildEnvironment = (
  key: SessionKey,
  options: { readonly runtime: string; readonly tokenGeneration: number; readonly isForBridge: boolean },
) => Readonly<Record<string, string>>

/** The fields of a lease that the brief depends on. */
interface BriefKey {
  readonly workspaceId: string
  readonly conversationId: string
  readonly messageId: string
  readonly epoch: number
  readonly failures: number
  readonly losses: number
  readonly interrupted: boolean
  readonly sessionRetried: boolean
  readonly parked?: object
}

/** A working folder that was checked within this time is not checked again: a check costs as much as a small query. */
const WORKING_DIR_RECHECK_MS = 1000
/** Workspaces whose base brief is cached. At the limit the cache is cleared. */
const BASE_BRIEFS_MAX = 1000

/** Throws `bad_config` for an invalid config or a missing working folder. The message then fails with that text. */
export function createBriefMaker(options: BriefMakerOptions) {
  const { store, homes, configs, childEnvironment = () => ({}) } = options
  const checkedMs = new Map<string, number>()
  const baseBriefOf = createBaseBriefs(homes)
  const settingsOf = oncePerTick((id) => store.read(() => findSettings(id)))
  return async (key: BriefKey, bridge?: BriefedBridge): Promise<Brief> => {
    const host = bridge?.host ?? options.host
    const id = key.workspaceId
    await configs.refresh(id)
    const row = await settingsOf(id)
    if (row === undefined) throw new MoleculeError('bad_config', `there is no workspace ${id}`)
    const carryOver = isFirstTurn(key) ? NO_CARRY_OVER : await store.read(() => findCarryOver(host, key))
    const brief = baseBriefOf(id, row)
    const nowMs = performance.now()
    const checkedAgoMs = nowMs - (checkedMs.get(brief.workingDir) ?? Number.NEGATIVE_INFINITY)
    if (bridge === undefined && checkedAgoMs > WORKING_DIR_RECHECK_MS) {
      await ensureWorkingDir(brief.workingDir, defaultWorkingDir(homes, id))
      checkedMs.set(brief.workingDir, nowMs)
    }
    const runtime = bridge?.backend ?? brief.runtime
    return {
      ...brief,
      runtime,
      env: childEnvironment(key, { runtime, tokenGeneration: row.tokenGeneration, isForBridge: bridge !== undefined }),
      ...carryOver,
    }
  }
}

type CarryOver = Pick<Brief, 'sessionToken' | 'notes'>

const NO_CARRY_OVER: CarryOver = {}

/** The first turn of a conversation, which is the common case, has nothing to carry over and costs no query. */
const isFirstTurn = ({ epoch }: BriefKey): boolean => epoch === 1

/** The session of the conversation, and the notes of earlier attempts at this message. */
function* findCarryOver(host: string, key: BriefKey): Transaction<CarryOver> {
  const sessionToken = yield* findSession(host, key)
  const notes = isRetry(key) ? yield* readNotes(key.messageId) : undefined
  return { sessionToken, notes }
}

/** Caches the part of a brief that changes only with the settings of the workspace. */
function createBaseBriefs(homes: Homes) {
  const known = new Map<string, { readonly row: SettingsRow; readonly brief: Brief }>()
  return (id: string, row: SettingsRow): Brief => {
    const last = known.get(id)
    if (last && last.row.settings === row.settings && last.row.role === row.role && last.row.runtime === row.runtime) {
      return last.brief
    }
    if (known.size >= BASE_BRIEFS_MAX) known.clear()
    const settings = parseSettings(row)
    const workingDir = fromStoredFolder(homes.dataDir, settings.workingDir)
    const brief = baseBrief({ ...settings, workingDir }, homes.path(id))
    known.set(id, { row, brief })
    return brief
  }
}

function baseBrief(settings: TurnSettings, home: string): Brief {
  const { runtime, role, workingDir, maxAttempts } = settings
  const model = modelOf(settings)
  const dailyBudget = costUsdPerDayMax(settings.runtimeConfig)
  return {
    runtime,
    options: backendOptionsOf(settings, home),
    systemPrompt: role,
    workingDir,
    maxAttempts,
    ...(settings.runtimeConfig['max_attempts'] === undefined && { attemptsUnset: true }),
    hasMcp: true,
    rateLimitPatienceMs: rateLimitPatienceMs(settings.runtimeConfig),
    env: {},
    model,
    costUsdPerDayMax: dailyBudget,
  }
}

/** `runtime_config.model` overrides the model of the workspace. */
function modelOf({ model, runtimeConfig }: TurnSettings): string | undefined {
  const own = runtimeConfig['model']
  return typeof own === 'string' && own.trim() !== '' ? own.trim() : model
}

/** The options of the workspace's backend. */
export function backendOptionsOf({ runtimeConfig, permission }: TurnSettings, home: string): Record<string, string> {
  const entries = Object.entries(runtimeConfig).filter(([key]) => !PLATFORM_ONLY_KEYS.has(key))
  const options = backendOptions({ ...Object.fromEntries(entries), config_dir: home })
  // The permission that an admin set overrides the one in the file.
  if (permission !== undefined) options['permission'] = permission
  const file = options['auth_token_file']
  // A relative path in config.yaml starts at the folder of config.yaml.
  if (file && !isAbsolute(file)) options['auth_token_file'] = join(home, file)
  return options
}

/** The first attempt has no notes to read. */
const isRetry = ({ failures, losses, interrupted, sessionRetried, parked }: BriefKey): boolean =>
  failures > 0 || losses > 0 || interrupted || sessionRetried || parked !== undefined
