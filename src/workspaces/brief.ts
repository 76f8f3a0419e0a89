/** Where briefs are made: by this one function for the local runtime and for bridges alike. */
import { isAbsolute, join } from 'node:path'
import { MoleculeError } from '../errors.ts'
import type { Brief } from '../protocol/brief.ts'
import { sessionToken } from '../sessions/sessions.ts'
import { type Store, sql, type Transaction } from '../store/store.ts'
import type { Configs } from './configs.ts'
import type { Homes } from './homes.ts'
import { backendOptions } from './options.ts'
import { findSettings, type TurnSettings } from './rows.ts'
import { defaultWorkingDir, ensureWorkingDir } from './working-dir.ts'

export interface BriefOptions {
  readonly store: Store
  readonly host: string
  readonly homes: Homes
  readonly configs: Configs
}

/** Of a lease: whose message it is, and what is known of earlier attempts at it. */
interface BriefKey {
  readonly workspaceId: string
  readonly conversationId: string
  readonly messageId: string
  readonly failures: number
  readonly losses: number
  readonly interrupted: boolean
  readonly sessionRetried: boolean
}

/** A working folder that was there so lately is not looked at again: the look costs as much as a small query. */
const FOLDER_SEEN_MS = 1000

/** A config that cannot be used, or a working folder that has gone, is `bad_config`: the message ends with its words. */
export function createBriefing({ store, host, homes, configs }: BriefOptions) {
  const seenMs = new Map<string, number>()
  return async (key: BriefKey): Promise<Brief> => {
    const id = key.workspaceId
    await configs.refresh(id)
    const { workspace, token, notes } = await store.read(function* () {
      const noted = isAgain(key) ? yield* notesOf(key.messageId) : undefined
      return { workspace: yield* findSettings(id), token: yield* sessionToken(host, key), notes: noted }
    })
    if (workspace === undefined) throw new MoleculeError('bad_config', `there is no workspace ${id}`)
    const nowMs = performance.now()
    if (nowMs - (seenMs.get(workspace.workingDir) ?? Number.NEGATIVE_INFINITY) > FOLDER_SEEN_MS) {
      await ensureWorkingDir(workspace.workingDir, defaultWorkingDir(homes, id))
      seenMs.set(workspace.workingDir, nowMs)
    }
    const { runtime, role, workingDir, maxAttempts } = workspace
    const model = modelOf(workspace)
    return {
      runtime,
      options: optionsOf(workspace, homes.path(id)),
      systemPrompt: role,
      workingDir,
      maxAttempts,
      env: {},
      ...(token !== undefined && { sessionToken: token }),
      ...(model !== undefined && { model }),
      ...(notes !== undefined && { notes }),
    }
  }
}

/** The more particular setting wins. */
function modelOf({ model, runtimeConfig }: TurnSettings): string | undefined {
  const own = runtimeConfig['model']
  return typeof own === 'string' && own.trim() !== '' ? own.trim() : model
}

/** What the platform reads itself is none of the backend's options: a change of it needs no new backend. */
const PLATFORM_KEYS: ReadonlySet<string> = new Set(['max_attempts', 'max_concurrent_tasks', 'working_dir'])

function optionsOf({ runtimeConfig }: TurnSettings, home: string): Record<string, string> {
  const entries = Object.entries(runtimeConfig).filter(([key]) => !PLATFORM_KEYS.has(key))
  const options = backendOptions(Object.fromEntries(entries))
  const file = options['auth_token_file']
  // A path in config.yaml is meant from where config.yaml is.
  if (file && !isAbsolute(file)) options['auth_token_file'] = join(home, file)
  return options
}

/** Nothing can have been noted before the first attempt: the common case asks for nothing. */
const isAgain = ({ failures, losses, interrupted, sessionRetried }: BriefKey): boolean =>
  failures > 0 || losses > 0 || interrupted || sessionRetried

/** What earlier attempts at the message kept for this one. */
export function* notesOf(messageId: string): Transaction<Record<string, string>> {
  const rows = yield* sql<{ key: string; value: string }>('select key, value from turn_notes where message_id = $1', [
    messageId,
  ])
  return Object.fromEntries(rows.map(({ key, value }) => [key, value]))
}
