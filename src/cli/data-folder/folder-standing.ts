/**
 * Decides at start whether the data folder is at home, was moved, or is a copy. A moved folder keeps its id and goes on. A
 * copy gets a new id and begins held: its original may be alive, and both would answer the same people.
 */

import { holdChannels } from '../../doors/chat/store/channels.ts'
import { MoleculeError } from '../../errors.ts'
import { ulid } from '../../ids.ts'
import { endEveryPush } from '../../inbox/push-ends.ts'
import { pauseEveryQueue } from '../../inbox/queue-rows.ts'
import { type Store, together } from '../../store/store.ts'
import { pauseEverySchedule } from '../../workspaces/schedules.ts'
import { askLine } from '../terminal/ask-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { isFolderLocked } from './data-folder.ts'
import { type FolderStanding, readHostFolder } from './host-id.ts'

export interface SettledFolder {
  readonly host: string
  readonly standing: FolderStanding
  /** Where the folder was; undefined when it is at home. */
  readonly formerPath?: string
  /** The id of the original, for a copy: the leases in a copied store carry it. */
  readonly formerHost?: string
}

export interface SettleFolderOptions {
  readonly dataDir: string
  /** The value of `--as`. */
  readonly as: string | undefined
  readonly terminal: Pick<Terminal, 'keyboard' | 'err'>
}

/** Writes nothing; `writeHostFolder` does, once a copy is held. The caller holds the lock of the folder. */
export async function settleFolder({ dataDir, as, terminal }: SettleFolderOptions): Promise<SettledFolder> {
  if (as !== undefined && as !== 'copy' && as !== 'move') {
    throw new MoleculeError('invalid_request', `--as cannot be ${JSON.stringify(as)}; it must be copy or move`)
  }
  const { id, from, standing: shown } = readHostFolder(dataDir)
  if (id === undefined) return { host: ulid(), standing: 'same' }
  const chosen = as ?? (shown === 'copy' ? await ask(from?.path ?? '', terminal) : undefined)
  const standing = chosen === undefined ? shown : standingAs(chosen, shown)
  if (standing === 'same') return { host: id, standing }
  const formerPath = from?.path ?? dataDir
  if (standing === 'moved' && shown === 'copy' && isFolderLocked(formerPath)) throw originalRuns(dataDir, formerPath)
  return standing === 'copy'
    ? { host: ulid(), standing, formerPath, formerHost: id }
    : { host: id, standing, formerPath }
}

/** A folder that is at home was not moved, whatever the flag says: it may stay in the settings of a service. */
const standingAs = (chosen: 'copy' | 'move', shown: FolderStanding): FolderStanding => {
  if (chosen === 'copy') return 'copy'
  return shown === 'same' ? 'same' : 'moved'
}

/** Undefined without a keyboard, and for any other answer. */
async function ask(
  formerPath: string,
  terminal: SettleFolderOptions['terminal'],
): Promise<'copy' | 'move' | undefined> {
  const question = `This data folder was made at ${formerPath}. Is it a copy, or was the folder moved here? [copy/move] `
  const answer = (await askLine(terminal, question)).toLowerCase()
  return answer === 'copy' || answer === 'move' ? answer : undefined
}

const originalRuns = (dataDir: string, formerPath: string): MoleculeError =>
  new MoleculeError(
    'in_use',
    `${dataDir} was not moved: a platform runs on its original ${formerPath}. Stop that one, or start with --as copy`,
    { details: { path: formerPath } },
  )

const WHY_HELD =
  'this data folder is a copy, and its original may use the same bot: add the channel again to use it here'

/**
 * A copied store begins with everything paused that would act by itself: turns, schedules, bots, webhooks. A database that
 * original and copy share is left alone: there the copy is one more node.
 */
export async function holdCopy(store: Store): Promise<void> {
  if (store.engine !== 'sqlite') return
  await store.write(() =>
    together([
      pauseEveryQueue(),
      pauseEverySchedule(),
      holdChannels(WHY_HELD),
      endEveryPush('the data folder is a copy: its original may call the same webhook'),
    ]),
  )
}

/** One sentence for the owner; undefined for a folder at home. */
export function standingText(
  { standing, formerPath }: SettledFolder,
  { isShared }: { isShared: boolean },
): string | undefined {
  if (standing === 'same') return undefined
  if (standing === 'moved') return `this data folder was moved here from ${formerPath}`
  const copy = `this data folder is a copy of ${formerPath} and has an id of its own`
  if (isShared) return `${copy}; it is one more node on the database of its original`
  return `${copy}; its workspaces, schedules, chat channels and webhooks are paused, because the original may run: "molecule resume --all" starts the workspaces`
}
