/** A plan as people read it: one block for each workspace, one line for each setting, a line diff for each prompt. */

import { diff } from 'node:util'
import { withoutControls } from '../../printable.ts'
import type { Json } from '../../protocol/a2a.ts'
import { shorten } from '../../truncate.ts'
import type { FieldChange } from './compare-workspace.ts'
import type { TeamPlan, WorkspacePlan } from './team-plan.ts'

const SIGNS = { create: '+', change: '~', delete: '-' } as const

/** Characters of a value that are shown; the rest is cut. */
const VALUE_CHARACTERS_MAX = 120
/** Lines of one text that are compared and shown; of a longer one only the number of lines. */
const TEXT_LINES_MAX = 200

export function renderPlan({ changes, notes }: TeamPlan): string {
  const blocks = changes.map((change) => {
    const fields = change.action === 'delete' ? [] : change.fields.flatMap(renderField)
    return [`${SIGNS[change.action]} ${change.name}`, ...fields.map((line) => `    ${line}`)].join('\n')
  })
  const lines = [...blocks, ...notes.map((note) => `note: ${note}`), countChanges(changes)]
  return withoutControls(`${lines.join('\n')}\n`)
}

/** `2 to create, 1 to change`, or that there is nothing to do. */
function countChanges(changes: readonly WorkspacePlan[]): string {
  const counts = Object.keys(SIGNS).flatMap((action) => {
    const count = changes.filter((change) => change.action === action).length
    return count === 0 ? [] : [`${count} to ${action}`]
  })
  return counts.length === 0 ? 'nothing to change' : counts.join(', ')
}

function renderField({ key, before, after }: FieldChange): string[] {
  if (isLongText(before) || isLongText(after)) return [`${key}:`, ...renderText(before, after)]
  if (before === undefined) return [`${key}: ${renderValue(after)}`]
  return [`${key}: ${renderValue(before)} -> ${renderValue(after)}`]
}

const isLongText = (value: Json | undefined): boolean => typeof value === 'string' && value.includes('\n')

function renderText(before: Json | undefined, after: Json | undefined): string[] {
  const [old, next] = [linesOf(before), linesOf(after)]
  if (Math.max(old.length, next.length) > TEXT_LINES_MAX) return [`  ${old.length} lines -> ${next.length} lines`]
  return diff(next, old).flatMap(([change, line]) => {
    const shown = renderValue(line === '' ? ' ' : line)
    return change === 0 ? [] : [`${change === 1 ? '  +' : '  -'} ${shown}`.trimEnd()]
  })
}

const linesOf = (value: Json | undefined): string[] =>
  value === undefined || value === '' ? [] : String(value).replace(/\n$/, '').split('\n')

function renderValue(value: Json | undefined): string {
  if (value === undefined) return 'none'
  return shorten(typeof value === 'string' && value.trim() !== '' ? value : JSON.stringify(value), VALUE_CHARACTERS_MAX)
}
