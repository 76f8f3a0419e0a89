/** What needs a person, as text: one line for each, for `molecule pending` and `molecule status`. */
import type { NeedView } from '../../client/needs.ts'
import { printable, printableName } from '../../printable.ts'
import { formatSeconds } from './human-time.ts'
import type { Column } from './output.ts'

/** `wants to use Bash: npm test`, `asks: which colour?`, or the reason. */
export function needText({ kind, reason, text, permission }: NeedView): string {
  if (permission !== undefined)
    return `wants to use ${printableName(permission.tool)}: ${printable(permission.subject)}`
  if (kind === 'question' && text !== undefined) return `asks: ${text}`
  return reason
}

/** `28 min`; empty where it does not expire. */
export const timeLeft = ({ expires_at: at }: NeedView): string =>
  at === undefined ? '' : formatSeconds(Math.max(0, Date.parse(at) - Date.now()) / 1000)

/** `permission`, `dead letter`. */
export const kindText = ({ kind }: NeedView): string => kind.replaceAll('_', ' ')

/** Of `molecule pending`. */
export const NEED_COLUMNS: readonly Column<NeedView>[] = [
  { title: 'id', of: ({ id }) => id, isWhole: true },
  { title: 'workspace', of: ({ workspace_name: name, workspace_id: id, to }) => name ?? (id || (to ?? '')) },
  { title: 'kind', of: kindText },
  {
    title: 'since',
    of: ({ since }) => (since === null ? '' : `${formatSeconds((Date.now() - Date.parse(since)) / 1000)} ago`),
  },
  { title: 'expires in', of: timeLeft },
  { title: 'what', of: needText },
]
