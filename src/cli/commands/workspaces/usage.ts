/**
 * `molecule usage`: what the turns cost, today and in the last days, of all workspaces or of one. A cost that an agent did
 * not report is named: it is not 0.
 */

import { type Command, InvalidArgumentError } from 'commander'
import type { ApiAnswer } from '../../../api/api.ts'
import { DAY_MS } from '../../../duration.ts'
import { withoutControls } from '../../../printable.ts'
import { spendingText } from '../../../usd.ts'
import type { CommandContext, DefineCommand } from '../../command-context.ts'
import { resolveWorkspaceId } from '../../platform/platform-access.ts'
import { formatSeconds } from '../../terminal/human-time.ts'
import type { Column } from '../../terminal/output.ts'

const DAYS_DEFAULT = 7
/** As `GET /usage` keeps them. */
const DAYS_MAX = 90

export const define: DefineCommand = (command: Command, openContext) => {
  command
    .argument('[workspace]', 'id or name; without it, all workspaces')
    .option('--days <number>', `how many days, at most ${DAYS_MAX} (${DAYS_DEFAULT})`, readDays)
    .action(async (workspace: string | undefined, { days = DAYS_DEFAULT }: { days?: number }) =>
      usage(await openContext(), workspace, days),
    )
}

function readDays(text: string): number {
  const days = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (days >= 1 && days <= DAYS_MAX) return days
  throw new InvalidArgumentError(`It must be a whole number from 1 to ${DAYS_MAX}.`)
}

type PlatformUsage = ApiAnswer<'GET /usage'>
type Sum = PlatformUsage['total']
type Day = PlatformUsage['days'][number]
type WorkspaceSum = PlatformUsage['workspaces'][number]

async function usage(context: CommandContext, workspace: string | undefined, days: number): Promise<void> {
  const client = context.platform()
  if (workspace === undefined) {
    const report = await client.call('GET /usage', { days })
    return await context.show(withToday(report), () => renderPlatform(context, report, days))
  }
  const { id, name } = await client.call('GET /workspaces/{id}', { id: await resolveWorkspaceId(client, workspace) })
  const report = await client.call('GET /workspaces/{id}/usage', { id, days, messages: 0 })
  const { messages: _none, ...shown } = report
  await context.show({ workspace_id: id, name, ...withToday(shown) }, () => {
    const head = `${withoutControls(name)}: ${headOf(report, days)}`
    return `${head}\n${context.table(report.days, DAY_COLUMNS, NO_TURNS)}`
  })
}

/** A turn that uses no model, as one of exec or mock, has no usage. */
const NO_TURNS = 'No turn of a model agent has ended in this time.'

function renderPlatform({ table }: CommandContext, report: PlatformUsage, days: number): string {
  const parts = [headOf(report, days), table(report.days, DAY_COLUMNS, NO_TURNS)]
  if (report.workspaces.length > 0) parts.push(table(report.workspaces, WORKSPACE_COLUMNS, ''))
  return parts.join('\n')
}

/** `today $0.12 (3 turns); last 7 days $1.90 (40 turns); days begin at 00:00 UTC`. */
const headOf = ({ days, total }: Pick<PlatformUsage, 'days' | 'total'>, wanted: number): string => {
  const period = wanted === 1 ? '' : `; last ${wanted} days ${costText(total)} (${turnsText(total)})`
  const today = todayOf(days)
  const spent = today === undefined ? '$0.00 (no turns)' : `${costText(today)} (${turnsText(today)})`
  return `today ${spent}${period}; days begin at 00:00 UTC\n`
}

const todayOf = (days: readonly Day[]): Day | undefined => days.find(({ day }) => day === dayOf(Date.now()))

const dayOf = (ms: number): string => new Date(ms - (ms % DAY_MS)).toISOString().slice(0, 10)

const withToday = <Report extends { readonly days: readonly Day[] }>(report: Report) => ({
  today: todayOf(report.days) ?? null,
  ...report,
})

const turnsText = ({ turns }: Pick<Sum, 'turns'>): string => (turns === 1 ? '1 turn' : `${turns || 'no'} turns`)

/** `unknown` where no turn reported its cost. */
function costText({ turns, cost_usd: costUsd, unknown_cost_turns: unknownTurns }: Sum): string {
  if (turns === 0) return '$0.00'
  return costUsd === null ? 'unknown' : spendingText({ costUsd, unknownTurns })
}

/** `12.3k in, 1.2k out`. */
function tokensText({ input_tokens: input, output_tokens: output }: Sum): string {
  if (input === null && output === null) return 'unknown'
  return `${countText(input)} in, ${countText(output)} out`
}

function countText(count: number | null): string {
  if (count === null) return 'unknown'
  if (count < 1000) return String(count)
  return count < 1_000_000 ? `${(count / 1000).toFixed(1)}k` : `${(count / 1_000_000).toFixed(1)}M`
}

const SUM_COLUMNS: readonly Column<Sum>[] = [
  { title: 'turns', of: ({ turns }) => turns },
  { title: 'cost', of: costText },
  { title: 'tokens', of: tokensText },
  { title: 'time', of: ({ duration_ms: ms }) => (ms === null ? 'unknown' : formatSeconds(ms / 1000)) },
]

const DAY_COLUMNS: readonly Column<Day>[] = [{ title: 'day', of: ({ day }) => day, isWhole: true }, ...SUM_COLUMNS]

const WORKSPACE_COLUMNS: readonly Column<WorkspaceSum>[] = [
  { title: 'workspace', of: ({ name, workspace_id: id }) => name ?? `${id} (deleted)` },
  ...SUM_COLUMNS,
]
