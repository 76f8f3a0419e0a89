/**
 * The schema, forward only: each migration is applied once, in order, and its number is stored. All engines run the
 * same text, so it uses types that all of them understand (`bytea` is a plain blob to SQLite).
 */
import { MoleculeError } from '../errors.ts'
import { schema0001 } from './migrations/0001-first.ts'
import { schema0002 } from './migrations/0002-tokens.ts'
import { schema0003 } from './migrations/0003-workspaces.ts'
import { schema0004 } from './migrations/0004-push.ts'
import { schema0005 } from './migrations/0005-secrets.ts'
import { schema0006 } from './migrations/0006-usage.ts'
import { schema0007 } from './migrations/0007-fewer-indexes.ts'
import { schema0008 } from './migrations/0008-begun.ts'
import { schema0009 } from './migrations/0009-readiness.ts'
import { schema0010 } from './migrations/0010-sign-off.ts'
import { schema0011 } from './migrations/0011-conversation-tokens.ts'
import { schema0012 } from './migrations/0012-upkeep-clock.ts'
import { schema0013 } from './migrations/0013-workspace-names.ts'
import { schema0014 } from './migrations/0014-parked.ts'
import { schema0015 } from './migrations/0015-answerers.ts'
import { schema0016 } from './migrations/0016-memories.ts'
import { schema0017 } from './migrations/0017-logins.ts'
import { schema0018 } from './migrations/0018-schedules.ts'
import { schema0019 } from './migrations/0019-delegations.ts'
import { schema0020 } from './migrations/0020-schedule-teams.ts'
import { schema0021 } from './migrations/0021-chat.ts'
import { schema0022 } from './migrations/0022-leased-at.ts'
import { schema0023 } from './migrations/0023-rules.ts'
import { schema0024 } from './migrations/0024-budgets.ts'
import { schema0025 } from './migrations/0025-needs-you.ts'
import { schema0026 } from './migrations/0026-chat-budgets.ts'
import { schema0027 } from './migrations/0027-has-children.ts'
import { schema0028 } from './migrations/0028-damaged-replies.ts'
import { schema0029 } from './migrations/0029-read-epoch.ts'
import { schema0030 } from './migrations/0030-token-work.ts'
import { schema0031 } from './migrations/0031-waits-for.ts'
import { schema0032 } from './migrations/0032-arrivals.ts'
import { schema0033 } from './migrations/0033-channel-secrets.ts'
import { schema0034 } from './migrations/0034-home-chats.ts'
import { schema0035 } from './migrations/0035-prompt-places.ts'

const MIGRATIONS: readonly string[] = [
  schema0001,
  schema0002,
  schema0003,
  schema0004,
  schema0005,
  schema0006,
  schema0007,
  schema0008,
  schema0009,
  schema0010,
  schema0011,
  schema0012,
  schema0013,
  schema0014,
  schema0015,
  schema0016,
  schema0017,
  schema0018,
  schema0019,
  schema0020,
  schema0021,
  schema0022,
  schema0023,
  schema0024,
  schema0025,
  schema0026,
  schema0027,
  schema0028,
  schema0029,
  schema0030,
  schema0031,
  schema0032,
  schema0033,
  schema0034,
  schema0035,
]

/** The migrations after version `current`, as [version, text]. Throws for a store of a newer Molecule. */
export function missingMigrations(current: number): [number, string][] {
  if (current > MIGRATIONS.length) {
    const message = `the store was written by a newer Molecule (schema ${current}, this program knows ${MIGRATIONS.length}): update Molecule`
    throw new MoleculeError('bad_config', message)
  }
  return MIGRATIONS.map((text, index): [number, string] => [index + 1, text]).slice(current)
}
