/** What a workspace used: tokens and cost by day as a chart, by conversation, and beside all other workspaces. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { WorkspaceUsageView } from '../../../../src/client/views.ts'
import { client } from '../../api/client.ts'
import { keys, useMay, useWorkspaces } from '../../api/queries.ts'
import { writePlace } from '../../route/route.ts'
import { EmptyState, Loading } from '../../ui/empty-state.tsx'
import { Choice, ReadFailure, Section } from '../../ui/section.tsx'
import { Cost } from '../../ui/text/time.tsx'
import { countText } from '../../ui/text/times.ts'
import { useRefreshOnChange } from '../refresh.ts'
import type { TabProps } from '../tab.ts'
import { DayChart } from './day-chart.tsx'
import { daysOf, knownTokens, tokensText, type UsageSumView } from './days.ts'
import { UsageTable } from './usage-table.tsx'

const RANGES = [
  { id: '7', title: '7 days' },
  { id: '14', title: '14 days' },
  { id: '30', title: '30 days' },
] as const

/** Conversations that are read, the latest. */
const ROWS_READ = 50

export function Usage({ workspace }: TabProps) {
  const [range, setRange] = useState<(typeof RANGES)[number]['id']>('14')
  const days = Number(range)
  useRefreshOnChange(workspace.id, 'usage')
  const usage = useQuery({
    queryKey: keys.workspace(workspace.id, 'usage', days),
    queryFn: () => client.call('GET /workspaces/{id}/usage', { id: workspace.id, days, messages: ROWS_READ }),
    placeholderData: (before) => before,
  })
  if (usage.data === undefined)
    return usage.error ? <ReadFailure error={usage.error} onRetry={() => usage.refetch()} /> : <Loading />
  const { total, conversations } = usage.data
  return (
    <div className="flex flex-col gap-6 p-5">
      <div className="flex flex-wrap items-center justify-between gap-3">
        <h3 className="font-[650] text-title">Usage</h3>
        <Choice label="Days" options={RANGES} chosen={range} onChoose={setRange} />
      </div>
      {total.turns === 0 ? (
        <EmptyState title="Nothing used in these days">
          Tokens and cost of each turn of {workspace.name} appear here.
        </EmptyState>
      ) : (
        <>
          <Totals total={total} />
          <DayChart days={daysOf(usage.data.days, days, Date.now())} />
          <Section title="By conversation">
            <ByConversation workspaceId={workspace.id} total={total} conversations={conversations} />
          </Section>
        </>
      )}
      <ByWorkspace workspaceId={workspace.id} days={days} />
    </div>
  )
}

interface ByConversationProps {
  readonly workspaceId: string
  readonly total: UsageSumView
  readonly conversations: WorkspaceUsageView['conversations']
}

/** A conversation is named by its first words. */
function ByConversation({ workspaceId, total, conversations }: ByConversationProps) {
  const { data } = useQuery({
    queryKey: keys.workspace(workspaceId, 'usage', 'titles'),
    queryFn: () => client.call('GET /workspaces/{id}/conversations', { id: workspaceId, limit: ROWS_READ }),
  })
  const titles = new Map(data?.conversations.map(({ id, title }) => [id, title]))
  const rows = conversations.map((each) => ({
    key: each.conversation_id,
    name: titles.get(each.conversation_id) || each.context_id,
    sum: each,
  }))
  return <UsageTable name="Conversation" total={total} rows={rows} />
}

function Totals({ total }: { readonly total: UsageSumView }) {
  const { turns, unknown_cost_turns: unpriced } = total
  return (
    <dl className="grid grid-cols-[repeat(auto-fit,minmax(84px,1fr))] gap-x-6 gap-y-3">
      <Total name={unpriced > 0 && unpriced < turns ? 'known cost' : 'cost'}>
        <Cost usd={total.cost_usd} />
      </Total>
      {unpriced > 0 && unpriced < turns ? (
        <Total name={unpriced === 1 ? 'turn of unknown cost' : 'turns of unknown cost'}>{countText(unpriced)}</Total>
      ) : null}
      <Total name={turns === 1 ? 'turn' : 'turns'}>{countText(turns)}</Total>
      <Total name="tokens">
        <TokensValue sum={total} />
      </Total>
    </dl>
  )
}

function TokensValue({ sum }: { readonly sum: UsageSumView }) {
  return <span className={knownTokens(sum) === null ? 'italic' : undefined}>{tokensText(sum)}</span>
}

function Total({ name, children }: { readonly name: string; readonly children: React.ReactNode }) {
  return (
    <div className="flex flex-col-reverse justify-end">
      <dt className="text-soft text-time">{name}</dt>
      <dd className="font-[650] text-dialog">{children}</dd>
    </div>
  )
}

/** Of all workspaces, for people who see them all. */
function ByWorkspace({ workspaceId, days }: { readonly workspaceId: string; readonly days: number }) {
  const may = useMay()
  const workspaces = useWorkspaces()
  const isAllowed = may('dead-letter.read')
  const { data } = useQuery({
    queryKey: keys.workspace(workspaceId, 'usage', 'all', days),
    queryFn: () => client.call('GET /usage', { days }),
    enabled: isAllowed,
    placeholderData: (before) => before,
  })
  if (data === undefined || data.total.turns === 0) return null
  return (
    <Section title="By workspace">
      <UsageTable
        name="Workspace"
        total={data.total}
        chosen={workspaceId}
        rows={data.workspaces.map((each) => ({
          key: each.workspace_id,
          name: workspaces.get(each.workspace_id)?.name ?? each.name ?? 'A deleted workspace',
          sum: each,
          ...(workspaces.has(each.workspace_id) && {
            href: writePlace({ workspaceId: each.workspace_id, tab: 'usage' }),
          }),
        }))}
      />
    </Section>
  )
}
