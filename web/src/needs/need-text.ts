/** The words of what waits for a person. */
import type { NeedView } from '../../../src/client/needs.ts'
import { printable } from '../../../src/printable.ts'
import { wantsTo } from '../ui/text/tool-text.ts'

type NamedNeedView = Pick<NeedView, 'kind' | 'workspace_name' | 'permission'>

export function needTitle({ kind, workspace_name: name, permission }: NamedNeedView): string {
  const workspace = name ?? 'A deleted workspace'
  switch (kind) {
    case 'permission':
      return `${workspace} wants to ${wantsTo(permission?.tool ?? 'a tool')}`
    case 'question':
      return `${workspace} asks`
    case 'dead_letter':
      return `A message to ${workspace} failed`
    case 'delivery':
      return 'An answer may not have arrived'
    case 'damaged_reply':
      return `A stored answer of ${workspace} is damaged`
    case 'login':
      return `${workspace} cannot work: it is not logged in`
    case 'workspace':
      return `${workspace} cannot work`
    case 'pairing':
      return 'A new person wants to talk to a bot'
    case 'schedule':
      return `A schedule of ${workspace} is paused`
    case 'turn_limit':
      return `${workspace} has used its turns of this hour`
    case 'budget':
      return `${workspace} has used its budget`
    default:
      return `${workspace} needs you`
  }
}

/** "Expires in 28 min": what happens then stands in the reason of the need. */
function expiryText(expiresAt: string, nowMs: number): string {
  const minutes = Math.ceil((Date.parse(expiresAt) - nowMs) / 60_000)
  if (minutes <= 0) return 'Expires now.'
  return minutes < 60 ? `Expires in ${minutes} min.` : `Expires in ${Math.round(minutes / 60)} h.`
}

/** The command in a sentence such as: run "codex login" on the machine of the platform. */
export const commandIn = (sentence: string): string | undefined => /"([^"]+)"/.exec(sentence)?.[1]

/** What is left of the time, and what "always" would cover. */
export function permissionNote({ permission, expires_at: expiresAt }: NeedView, nowMs: number): string {
  const covered = permission?.would_cover?.sentence
  const always =
    covered === undefined ? '' : `“Always” ${covered.charAt(0).toLowerCase()}${printable(covered.slice(1))}`
  return [expiresAt === undefined ? '' : expiryText(expiresAt, nowMs), always].filter(Boolean).join(' ')
}
