/** A permission that the agent waits for: the whole command, and Allow once, Always allow, Deny. */
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { ChatMessageView } from '../../../../../src/client/live-conversation.ts'
import { allowAlways, type PendingAskView, type RuleChoiceView } from '../../../../../src/client/needs.ts'
import { printable } from '../../../../../src/printable.ts'
import { client, reasonOf } from '../../../api/client.ts'
import { keys, queryClient, useMay } from '../../../api/queries.ts'
import { Button } from '../../../ui/button.tsx'
import { Dot } from '../../../ui/dot.tsx'
import { Time, useNow } from '../../../ui/text/time.tsx'
import { tookTime } from '../../../ui/text/times.ts'
import { wantsTo } from '../../../ui/text/tool-text.ts'
import { showToast } from '../../../ui/toasts.tsx'
import type { TabProps } from '../../tab.ts'
import { FolderPath } from './folder-path.tsx'
import { shownFolder } from './shown-folder.ts'

type AskView = NonNullable<ChatMessageView['ask']>

interface PermissionCardProps extends TabProps {
  readonly ask: AskView
}

export function PermissionCard({ ask, workspace }: PermissionCardProps) {
  const may = useMay()
  const [isChoosing, setChoosing] = useState(false)
  const choices = useRuleChoices(workspace.id, ask.id)
  const answer = useAnswer(ask, workspace.id)
  const isBusy = answer.isPending || answer.isSuccess
  const folder = shownFolder(workspace)
  const title = `${workspace.name} wants to ${wantsTo(ask.tool)}`
  return (
    <section aria-label={title} className="flex min-w-0 flex-col gap-3 rounded-card border border-needs-line p-4">
      <h3 className="flex items-baseline gap-2 font-[650] text-body">
        <Dot state="needs" className="translate-y-[-1px]" />
        <span className="min-w-0 flex-1 break-words">{title}</span>
        <span className="shrink-0 font-normal text-faint text-time">
          <Time at={ask.asked_at} />
        </span>
      </h3>
      {/* Never cut: the whole command is visible before it can be allowed. */}
      <pre className="whitespace-pre-wrap break-all rounded-button border border-line bg-raised px-3 py-2 font-mono text-second">
        {printable(ask.subject)}
      </pre>
      {folder === undefined ? null : (
        <p className="text-second text-soft">
          In <FolderPath path={folder} />
        </p>
      )}
      {may('pending.answer') && !isChoosing ? (
        <div className="flex flex-wrap gap-2 max-md:flex-col">
          <Button variant="ink" disabled={isBusy} onClick={() => answer.mutate({ decision: 'allow' })}>
            Allow once
          </Button>
          {choices.length > 0 ? (
            <Button disabled={isBusy} onClick={() => setChoosing(true)}>
              Always allow …
            </Button>
          ) : null}
          <Button disabled={isBusy} onClick={() => answer.mutate({ decision: 'deny' })}>
            Deny
          </Button>
        </div>
      ) : null}
      {isChoosing ? (
        <RuleChoices
          choices={choices}
          isBusy={isBusy}
          onChoose={({ pattern }) => answer.mutate({ decision: 'always', pattern })}
          onBack={() => setChoosing(false)}
        />
      ) : null}
      <Expiry at={ask.expires_at} />
    </section>
  )
}

/** The rules that can be made of this ask: the exact one, and one that covers more, where there is one. */
function useRuleChoices(workspaceId: string, askId: string): readonly RuleChoiceView[] {
  const may = useMay()
  const { data } = useQuery({
    queryKey: keys.workspace(workspaceId, 'pending', askId),
    queryFn: async (): Promise<PendingAskView | null> =>
      (await client.all('GET /pending', 'pending', { workspace_id: workspaceId })).find(({ id }) => id === askId) ??
      null,
    enabled: may('pending.read'),
  })
  return [data?.would_cover, data?.would_cover_more].filter((choice) => choice !== undefined)
}

type Answer = { readonly decision: 'allow' | 'deny' } | { readonly decision: 'always'; readonly pattern: string }

function useAnswer(ask: AskView, workspaceId: string) {
  return useMutation({
    mutationFn: async (answer: Answer) => {
      if (answer.decision !== 'always') {
        await client.call('POST /pending/{id}', { id: ask.id, body: { decision: answer.decision } })
        return
      }
      const rule = await allowAlways(client, ask.id, answer.pattern)
      showToast(`Always allowed: ${printable(rule.pattern)}`, {
        title: 'Undo',
        onChoose: () => revoke(workspaceId, rule.id),
      })
    },
    onSuccess: () => {
      void queryClient.invalidateQueries({ queryKey: keys.needs })
      void queryClient.invalidateQueries({ queryKey: keys.workspace(workspaceId, 'rules') })
    },
    onError: (error) => showToast(reasonOf(error)),
  })
}

/** The ask itself stays allowed; the rule allows no further one. */
function revoke(workspaceId: string, ruleId: string): void {
  client.call('DELETE /workspaces/{id}/rules/{rule}', { id: workspaceId, rule: ruleId }).then(
    () => showToast('The rule is revoked. The next such use is asked again.'),
    (error) => showToast(reasonOf(error)),
  )
}

interface RuleChoicesProps {
  readonly choices: readonly RuleChoiceView[]
  readonly isBusy: boolean
  readonly onChoose: (choice: RuleChoiceView) => void
  readonly onBack: () => void
}

/** Shows exactly what each rule covers before it is made. */
function RuleChoices({ choices, isBusy, onChoose, onBack }: RuleChoicesProps) {
  const [chosen, setChosen] = useState(0)
  const choice = choices[chosen]
  return (
    <div className="flex min-w-0 flex-col gap-3">
      <fieldset className="flex min-w-0 flex-col gap-2">
        <legend className="mb-1 font-[550] text-second">Always allow</legend>
        {choices.map((each, index) => (
          <label
            key={each.pattern}
            className="flex min-w-0 cursor-pointer gap-2.5 rounded-button border border-line px-3 py-2 has-checked:border-accent has-checked:bg-accent-soft"
          >
            <input
              type="radio"
              name="rule"
              className="mt-1 shrink-0 self-start accent-accent"
              checked={index === chosen}
              onChange={() => setChosen(index)}
            />
            <span className="min-w-0">
              <code className="whitespace-pre-wrap break-all font-mono text-second">{printable(each.pattern)}</code>
              <span className="block text-second text-soft">{printable(each.sentence)}</span>
            </span>
          </label>
        ))}
      </fieldset>
      <div className="flex flex-wrap gap-2 max-md:flex-col">
        <Button disabled={isBusy || choice === undefined} onClick={() => choice && onChoose(choice)}>
          Always allow this
        </Button>
        <Button variant="quiet" disabled={isBusy} onClick={onBack}>
          Back
        </Button>
      </div>
    </div>
  )
}

function Expiry({ at }: { readonly at: string }) {
  const leftMs = Date.parse(at) - useNow()
  return (
    <p className="text-faint text-time">
      {leftMs > 0 ? `Expires in ${tookTime(leftMs)}, then it counts as denied.` : 'Expired: it counts as denied.'}
    </p>
  )
}
