/** Where briefs are made: by this one function for the local runtime and for bridges alike. */
import { isAbsolute, join } from 'node:path'
import { MoleculeError } from '../../errors.ts'
import type { Brief } from '../../protocol/brief.ts'
import { findSession, type SessionKey } from '../../sessions/sessions.ts'
import { type Store, sql, type Transaction } from '../../store/store.ts'
import { backendOptions } from '../config/backend-options.ts'
import { PLATFORM_ONLY_KEYS } from '../config/config-file.ts'
import type { WorkspaceConfigs } from '../config/workspace-configs.ts'
import type { Homes } from '../homes/homes.ts'
import { defaultWorkingDir, ensureWorkingDir } from '../homes/working-dir.ts'
import { oncePerTick } from '../once-per-tick.ts'
import type { BriefedBridge } from '../workspace.ts'
import { findSettings, parseSettings, type SettingsRow, type TurnSettings } from '../workspace-rows.ts'

export interface BriefMakerOptions {
  readonly store: Store
  readonly host: string
  readonly homes: Homes
  readonly configs: WorkspaceConfigs
  /** What the children of a turn of that runtime are told of the platform. */
  readonly childEnvironment?: (key: SessionKey, runtime: string) => Readonly<Record<string, string>>
}

/** Of a lease: whose message it is, and what is known of earlier attempts at it. */
interface BriefKey {
  readonly workspaceId: string
  readonly conversationId: string
  readonly messageId: string
  readonly epoch: number
  readonly failures: number
  readonly losses: number
  readonly interrupted: boolean
  readonly sessionRetried: boolean
}

/** A working folder that was there so lately is not looked at again: the look costs as much as a small query. */
const WORKING_DIR_RECHECK_MS = 1000
/** Workspaces whose settings are kept as they were last read. */
const BASE_BRIEFS_MAX = 1000

/** A config that cannot be used, or a working folder that has gone, is `bad_config`: the message ends with its words. */
export function createBriefMaker(options: BriefMakerOptions) {
  const { store, homes, configs, childEnvironment = () => ({}) } = options
  const seenMs = new Map<string, number>()
  const baseBriefOf = createBaseBriefs(homes)
  const settingsOf = oncePerTick((id) => store.read(() => findSettings(id)))
  return async (key: BriefKey, bridge?: BriefedBridge): Promise<Brief> => {
    const host = bridge?.host ?? options.host
    const id = key.workspaceId
    await configs.refresh(id)
    const row = await settingsOf(id)
    if (row === undefined) throw new MoleculeError('bad_config', `there is no workspace ${id}`)
    const kept = isFirstTurn(key) ? NO_CARRY_OVER : await store.read(() => findCarryOver(host, key))
    const brief = baseBriefOf(id, row)
    const nowMs = performance.now()
    const seenAgoMs = nowMs - (seenMs.get(brief.workingDir) ?? Number.NEGATIVE_INFINITY)
    if (bridge === undefined && seenAgoMs > WORKING_DIR_RECHECK_MS) {
      await ensureWorkingDir(brief.workingDir, defaultWorkingDir(homes, id))
      seenMs.set(brief.workingDir, nowMs)
    }
    const runtime = bridge?.backend ?? brief.runtime
    return {
      ...brief,
      runtime,
      env: childEnvironment(key, runtime),
      ...kept,
    }
  }
}

type CarryOver = Pick<Brief, 'sessionToken' | 'notes'>

const NO_CARRY_OVER: CarryOver = {}

/** No turn of its conversation came before this one, so none has left anything: the common case asks for nothing. */
const isFirstTurn = ({ epoch }: BriefKey): boolean => epoch === 1

/** What earlier turns of the conversation, and earlier attempts at this message, kept for this one. */
function* findCarryOver(host: string, key: BriefKey): Transaction<CarryOver> {
  const sessionToken = yield* findSession(host, key)
  const notes = isRetry(key) ? yield* findNotes(key.messageId) : undefined
  return { ...(sessionToken !== undefined && { sessionToken }), ...(notes !== undefined && { notes }) }
}

/** The part of a brief that is the same for every turn until somebody changes the workspace. */
function createBaseBriefs(homes: Homes) {
  const known = new Map<string, { readonly row: SettingsRow; readonly brief: Brief }>()
  return (id: string, row: SettingsRow): Brief => {
    const last = known.get(id)
    if (last && last.row.settings === row.settings && last.row.role === row.role && last.row.runtime === row.runtime) {
      return last.brief
    }
    if (known.size >= BASE_BRIEFS_MAX) known.clear()
    const brief = baseBrief(parseSettings(row), homes.path(id))
    known.set(id, { row, brief })
    return brief
  }
}

function baseBrief(settings: TurnSettings, home: string): Brief {
  const { runtime, role, workingDir, maxAttempts } = settings
  const model = modelOf(settings)
  return {
    runtime,
    options: optionsOf(settings, home),
    systemPrompt: role,
    workingDir,
    maxAttempts,
    env: {},
    ...(model !== undefined && { model }),
  }
}

/** The more particular setting wins. */
function modelOf({ model, runtimeConfig }: TurnSettings): string | undefined {
  const own = runtimeConfig['model']
  return typeof own === 'string' && own.trim() !== '' ? own.trim() : model
}

function optionsOf({ runtimeConfig, permission }: TurnSettings, home: string): Record<string, string> {
  const entries = Object.entries(runtimeConfig).filter(([key]) => !PLATFORM_ONLY_KEYS.has(key))
  const options = backendOptions({ ...Object.fromEntries(entries), config_dir: home })
  // What only an admin may set goes before what stands in a file.
  if (permission !== undefined) options['permission'] = permission
  const file = options['auth_token_file']
  // A path in config.yaml is meant from where config.yaml is.
  if (file && !isAbsolute(file)) options['auth_token_file'] = join(home, file)
  return options
}

/** Nothing can have been noted before the first attempt. */
const isRetry = ({ failures, losses, interrupted, sessionRetried }: BriefKey): boolean =>
  failures > 0 || losses > 0 || interrupted || sessionRetried

/** What earlier attempts at the message kept for this one. */
export function* findNotes(messageId: string): Transaction<Record<string, string>> {
  const rows = yield* sql<{ key: string; value: string }>('select key, value from turn_notes where message_id = $1', [
    messageId,
  ])
  return Object.fromEntries(rows.map(({ key, value }) => [key, value]))
}
