/** The ways out of a need. The safe common choice comes first. */
import { type FormEvent, useState } from 'react'
import type { NeedView } from '../../../src/client/needs.ts'
import { printable } from '../../../src/printable.ts'
import { client } from '../api/client.ts'
import { Button } from '../ui/button.tsx'
import { Field } from '../ui/field.tsx'
import { useDraft } from '../ui/use-draft.ts'

export interface NeedActionsProps {
  readonly need: NeedView
  readonly isBusy: boolean
  readonly onAct: (run: () => Promise<unknown>) => void
}

const VARIANTS: Readonly<Record<string, 'ink' | 'quiet'>> = { allow: 'ink', discard: 'quiet' }
/** What a rule covers is never cut: a long pattern wraps inside of its button. */
const WRAPPED = 'h-auto! min-h-8 max-w-full shrink! whitespace-normal! py-1 text-left max-md:min-h-11'

/** The command stands above the buttons already. */
const coversOnlySubject = ({ permission }: NeedView): boolean =>
  permission?.would_cover !== undefined && permission.would_cover.pattern === permission.subject

export function NeedActions(props: NeedActionsProps) {
  const { need, isBusy, onAct } = props
  if (need.kind === 'question') return <AnswerForm {...props} />
  return (
    <div className="flex flex-wrap gap-2">
      {need.actions.map((action) => (
        <Button
          key={action.name}
          variant={VARIANTS[action.name] ?? 'plain'}
          disabled={isBusy}
          onClick={() => onAct(() => client.follow(action))}
          className={action.name === 'always' ? WRAPPED : undefined}
        >
          {labelOf(need, action)}
          {action.name === 'always' && !coversOnlySubject(need) ? (
            <code className="min-w-0 break-all font-[400] font-mono text-time">
              {printable(need.permission?.would_cover?.pattern ?? '')}
            </code>
          ) : null}
        </Button>
      ))}
    </div>
  )
}

function labelOf(need: NeedView, { name, label }: NeedView['actions'][number]): string {
  if (name === 'always' && coversOnlySubject(need)) return 'Always allow this'
  // The API calls it a replay; the page has one word for it everywhere.
  return name === 'replay' ? 'Run again' : label
}

function AnswerForm({ need, isBusy, onAct }: NeedActionsProps) {
  const draft = useDraft(`answer.${need.id}`, { text: '' })
  const { text } = draft.value
  // The same id for every try: an answer that was sent twice is one.
  const [messageId] = useState(() => crypto.randomUUID())
  const { workspace_id: workspaceId, task_id: taskId, context_id: contextId } = need
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const message = { messageId, role: 'ROLE_USER', parts: [{ text: text.trim() }] } as const
    const place = { ...(taskId && { taskId }), ...(contextId && { contextId }) }
    if (text.trim() === '') return
    onAct(async () => {
      await client.sendMessage(workspaceId, { ...message, ...place }, { wait: false })
      draft.forget()
    })
  }
  return (
    <form onSubmit={submit} className="flex gap-2">
      <div className="min-w-0 flex-1">
        <Field
          label={`Answer ${need.workspace_name ?? ''}`}
          hideLabel
          placeholder={`Answer ${need.workspace_name ?? ''}`}
          value={text}
          onChange={({ target }) => draft.change({ text: target.value })}
        />
      </div>
      <Button type="submit" className="h-9" disabled={isBusy || text.trim() === ''}>
        Send
      </Button>
    </form>
  )
}
