/** What owners always allow in a workspace, and the button that takes it back. */
import { useQuery } from '@tanstack/react-query'
import type { RuleView } from '../../../../src/client/views.ts'
import { printable, printableName } from '../../../../src/printable.ts'
import { client } from '../../api/client.ts'
import { keys, useMay } from '../../api/queries.ts'
import { Button } from '../../ui/button.tsx'
import { Chip } from '../../ui/chip.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { Loaded, Row, Rows, Section } from '../../ui/section.tsx'
import { Time } from '../../ui/text/time.tsx'
import { showToast } from '../../ui/toasts.tsx'
import { refresh, usePanelAction, useRefreshOnChange } from '../refresh.ts'
import type { TabProps } from '../tab.ts'

export function Rules({ workspace }: TabProps) {
  useRefreshOnChange(workspace.id, 'rules')
  const rules = useQuery({
    queryKey: keys.workspace(workspace.id, 'rules'),
    queryFn: () => client.all('GET /workspaces/{id}/rules', 'rules', { id: workspace.id }),
  })
  return (
    <Section title="Always allowed" count={rules.data?.length}>
      <Loaded query={rules}>{(data) => <RuleList rules={data} workspaceId={workspace.id} />}</Loaded>
    </Section>
  )
}

function RuleList({ rules, workspaceId }: { readonly rules: readonly RuleView[]; readonly workspaceId: string }) {
  if (rules.length === 0)
    return (
      <EmptyState title="Nothing is always allowed">Choose “Always allow” on a question to make a rule.</EmptyState>
    )
  return (
    <>
      <Rows>
        {rules.map((rule) => (
          <RuleRow key={rule.id} rule={rule} workspaceId={workspaceId} />
        ))}
      </Rows>
      <p className="text-faint text-time">A rule never covers more than what was on the screen when it was made.</p>
    </>
  )
}

const SCOPES = { exact: 'exact', prefix: 'begins with', folder: 'in this folder' }

function RuleRow({ rule, workspaceId }: { readonly rule: RuleView; readonly workspaceId: string }) {
  const may = useMay()
  const { isBusy, run } = usePanelAction()
  const revoke = async () => {
    const target = { id: workspaceId, rule: rule.id }
    if (!(await run(() => client.call('DELETE /workspaces/{id}/rules/{rule}', target)))) return
    showToast(`Revoked: “${printable(rule.pattern)}” is asked again`)
    refresh(workspaceId, 'rules')
  }
  return (
    <Row
      actions={
        may('pending.answer') ? (
          <Button disabled={isBusy} onClick={revoke}>
            Revoke<span className="sr-only">{` the rule for ${rule.pattern}`}</span>
          </Button>
        ) : undefined
      }
    >
      <p className="flex flex-wrap items-center gap-2">
        <code className="min-w-0 break-all font-mono text-second">{printable(rule.pattern)}</code>
        <Chip>
          {printableName(rule.tool)}, {SCOPES[rule.scope]}
        </Chip>
      </p>
      <p className="text-faint text-time">
        By {printableName(rule.made_by)}, <Time at={rule.made_at} />. {usedText(rule)}
        {rule.last_used_at === undefined ? null : (
          <>
            {', last '}
            <Time at={rule.last_used_at} />
          </>
        )}
      </p>
    </Row>
  )
}

function usedText({ used }: RuleView): string {
  if (used === 0) return 'Not used yet.'
  return used === 1 ? 'Used once' : `Used ${used} times`
}
