/**
 * The overview of `molecule status`: each workspace with presence, queue and cost of today, then what needs a person, each
 * with the command that handles it. A token that may not read a part of it gets the rest.
 */

import { type NeedView, readNeeds } from '../../../client/needs.ts'
import { readReadiness } from '../../../client/readiness.ts'
import type { WorkspaceSummary } from '../../../client/views.ts'
import { listWorkspaces } from '../../../client/workspaces.ts'
import { MoleculeError } from '../../../errors.ts'
import { withoutControls } from '../../../printable.ts'
import { truncate } from '../../../truncate.ts'
import type { CommandContext } from '../../command-context.ts'
import { resolveWorkspaceId } from '../../platform/platform-access.ts'
import { needText, timeLeft } from '../../terminal/need-text.ts'
import { alignColumns, type Column } from '../../terminal/output.ts'
import { workspaceStatusText } from '../../terminal/task-text.ts'

/** Needs that are shown; of the rest the number. */
const NEEDS_SHOWN = 10
const CELL_CHARACTERS_MAX = 60

export async function showOverview(context: CommandContext, workspace: string | undefined): Promise<void> {
  const client = context.platform()
  const only = workspace === undefined ? undefined : await resolveWorkspaceId(client, workspace)
  const [{ ready, reason }, workspaces, waiting] = await Promise.all([
    readReadiness(client),
    only === undefined
      ? listWorkspaces(client)
      : client.call('GET /workspaces/{id}', { id: only }).then((one) => [one]),
    ifAllowed(readNeeds(client, only)),
  ])
  const report: OverviewReport = {
    url: context.apiUrl,
    ready,
    reason,
    workspaces,
    total: totalOf(workspaces),
    ...(waiting !== undefined && { needs_you: waiting.needs, needs_you_count: waiting.count }),
  }
  await context.show(report, () => renderOverview(context, report))
}

/** Undefined where this token may not read it: a workspace's own token sees no list of the owners. */
async function ifAllowed<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading
  } catch (thrown) {
    if (thrown instanceof MoleculeError && thrown.code === 'forbidden') return undefined
    throw thrown
  }
}

function totalOf(workspaces: readonly WorkspaceSummary[]) {
  const sum = (read: (line: WorkspaceSummary) => number | null | undefined) =>
    workspaces.reduce((total, line) => total + (read(line) ?? 0), 0)
  const isCostKnown = workspaces.some(({ today }) => (today?.cost_usd ?? null) !== null)
  return {
    workspaces: workspaces.length,
    running: sum(({ running }) => running),
    waiting: sum(({ queue_depth: depth }) => depth),
    today: {
      turns: sum(({ today }) => today?.turns),
      unknown_turns: sum(({ today }) => today?.unknown_turns),
      cost_usd: isCostKnown ? sum(({ today }) => today?.cost_usd) : null,
    },
  }
}

const COLUMNS: readonly Column<WorkspaceSummary>[] = [
  { title: 'name', of: ({ name }) => name },
  { title: 'status', of: ({ status }) => workspaceStatusText(status) },
  { title: 'running', of: ({ running }) => running },
  { title: 'waiting', of: ({ queue_depth: depth }) => depth },
  { title: 'today', of: ({ today }) => (today === undefined ? '' : usageText(today)) },
  { title: 'doing', of: ({ status_text: text, current_task: task }) => text ?? task },
]

interface OverviewReport {
  readonly url: string
  readonly ready: boolean
  readonly reason?: string
  readonly workspaces: readonly WorkspaceSummary[]
  readonly total: ReturnType<typeof totalOf>
  /** Absent for a token that may not answer. */
  readonly needs_you?: readonly NeedView[]
  readonly needs_you_count?: number
}

function renderOverview(context: CommandContext, report: OverviewReport): string {
  const { url, ready, reason, workspaces, total, needs_you: needs, needs_you_count: needsCount = 0 } = report
  const count = total.workspaces === 1 ? '1 workspace' : `${total.workspaces} workspaces`
  const load = `${total.running} running, ${total.waiting} waiting`
  const head = `${url} ${ready ? 'is ready' : `is not ready: ${reason}`}; ${count}, ${load}; today ${usageText(total.today) || 'no usage'}\n\n`
  const none = 'There are no workspaces yet; create one with "molecule init".'
  const table = context.table(workspaces, COLUMNS, none)
  const needed = needs === undefined ? '' : `\n${renderNeeds(context, needs, needsCount)}`
  return `${withoutControls(head)}${table}${renderDegraded(workspaces)}${renderLimits(context, workspaces)}${needed}`
}

/** A failed one, or one without a log-in, is among the needs. */
function renderDegraded(workspaces: readonly WorkspaceSummary[]): string {
  const rows = workspaces.flatMap(({ name, status, status_reason: reason = '' }) =>
    status === 'degraded' && reason !== '' ? [[`  ${withoutControls(name)}`, withoutControls(reason)]] : [],
  )
  return rows.length === 0 ? '' : `\nDegraded:\n${alignColumns(rows)}`
}

/** What does not work with the program of an agent, each with its workspace. */
function renderLimits({ withOwnCommand }: CommandContext, workspaces: readonly WorkspaceSummary[]): string {
  const rows = workspaces.flatMap(({ name, limits = [] }) =>
    limits.map((limit) => [`  ${withoutControls(name)}`, withOwnCommand(withoutControls(limit))]),
  )
  return rows.length === 0 ? '' : `\nWorks with less than it could:\n${alignColumns(rows)}`
}

function renderNeeds({ command }: CommandContext, needs: readonly NeedView[], count: number): string {
  if (needs.length === 0) return 'Nothing needs you.\n'
  // The command has a line of its own: beside a long reason it would be out of sight.
  const rows = needs.slice(0, NEEDS_SHOWN).flatMap((need) => {
    const left = timeLeft(need)
    const text = `${shortenFor(need)}${left === '' ? '' : ` (${left} left)`}`
    const name = need.workspace_name ?? (need.workspace_id || (need.to ?? ''))
    return [
      [`  ${withoutControls(name)}`, withoutControls(text).replaceAll(/\s+/g, ' ')],
      ['', `${command} pending ${wayOut(need)}`],
    ]
  })
  const more = count > NEEDS_SHOWN ? `  and ${count - NEEDS_SHOWN} more: ${command} pending\n` : ''
  return `Needs you (${count}):\n${alignColumns(rows)}${more}`
}

/** The command that goes on. What loses or repeats something is shown first. */
function wayOut({ kind, id, actions }: NeedView): string {
  if (kind === 'permission') return `allow ${id}`
  if (kind === 'turn_limit') return `more ${id}`
  const amount = actions.find(({ name }) => name === 'raise')?.body?.['max_cost_usd']
  return amount === undefined ? `show ${id}` : `raise ${id} ${amount}`
}

/** A reason that names what to do is never cut. */
const shortenFor = (need: NeedView): string => {
  const text = needText(need)
  return need.permission === undefined && need.text === undefined ? text : truncate(text, CELL_CHARACTERS_MAX)
}

/** `3 turns, $0.12`; a cost that is not known is not 0. Empty without turns. */
function usageText({ turns, unknown_turns: unknown, cost_usd: cost }: NonNullable<WorkspaceSummary['today']>): string {
  if (turns === 0) return ''
  const counted = turns === 1 ? '1 turn' : `${turns} turns`
  if (cost === null) return `${counted}, cost unknown`
  return `${counted}, ${unknown > 0 ? 'at least ' : ''}$${cost.toFixed(2)}`
}
