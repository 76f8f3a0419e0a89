/**
 * Where a report goes that answers no person: `owners` (the home chats of the owners), `<channel>/<place>` (a chat), or
 * `<channel>/@<person>` (that person's home chat). It is looked up when the report is there, so a report goes through a door
 * of its own, which sends it on.
 */
import { MoleculeError } from '../../../errors.ts'
import type { ReplyAddress } from '../../../inbox/delivery.ts'
import type { PersonKey } from '../store/pairings.ts'

/** The door of deliveries whose chats are not known yet; its channels are texts of the form above. */
export const REPORTS_DOOR = 'reports'

export const OWNERS = 'owners'

export type ReportTarget =
  | { readonly type: 'owners' }
  | ({ readonly type: 'person' } & PersonKey)
  | { readonly type: 'place'; readonly channel: string; readonly place: string }

/** The answer of an agent for this target. */
export const reportAddress = (text: string): ReplyAddress => ({ door: REPORTS_DOOR, channel: text, mayBeSilent: true })

/** Throws `invalid_request` for a text of another form. */
export function readReportTarget(text: string): ReportTarget {
  if (text === OWNERS) return { type: 'owners' }
  // The id of a place may have a slash in it, the name of a channel has none.
  const slash = text.indexOf('/')
  const [channel, rest] = [text.slice(0, Math.max(0, slash)), text.slice(slash + 1)]
  if (channel === '' || rest === '' || rest === '@')
    throw new MoleculeError(
      'invalid_request',
      'report_to must be "owners", "<channel>/<place>" or "<channel>/@<person>"',
      {
        details: { path: 'report_to' },
      },
    )
  if (rest.startsWith('@')) return { type: 'person', channel, person: rest.slice(1) }
  return { type: 'place', channel, place: rest }
}
