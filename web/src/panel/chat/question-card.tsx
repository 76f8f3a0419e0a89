/** A question of the agent, answered in place: the answer goes to its task. */
import { type FormEvent, useState } from 'react'
import { useMay } from '../../api/queries.ts'
import { Button } from '../../ui/button.tsx'
import { Dot } from '../../ui/dot.tsx'
import { Field } from '../../ui/field.tsx'
import { Markdown } from '../../ui/markdown.tsx'
import type { TabProps } from '../tab.ts'
import type { ChatEntry, ChatHistory } from './chat-history.ts'
import { draftKey, readDraft, writeDraft } from './drafts.ts'
import { sendMessage } from './outgoing.ts'

interface QuestionCardProps extends TabProps {
  readonly entry: ChatEntry
  readonly history: ChatHistory
}

export function QuestionCard({ entry, history, workspace }: QuestionCardProps) {
  const may = useMay()
  const key = draftKey(workspace.id, `answer-${entry.id}`)
  const [text, setText] = useState(() => readDraft(key))
  const { reason = '', reply, task_id: taskId } = entry
  const { contextId, principal } = history
  const write = (value: string) => {
    setText(value)
    writeDraft(key, value)
  }
  const send = (event: FormEvent) => {
    event.preventDefault()
    if (text.trim() === '' || contextId === undefined) return
    sendMessage({ workspaceId: workspace.id, contextId, taskId, text: text.trim(), files: [] })
    write('')
  }
  // An agent that ended its turn with a question has written it as its answer.
  const isShown = reply?.text.trim() === reason.trim() || reason === ''
  return (
    <section
      aria-label={`${workspace.name} asks`}
      className="flex min-w-0 flex-col gap-3 rounded-card border border-needs-line p-4"
    >
      <h3 className="flex items-baseline gap-2 font-[650] text-body">
        <Dot state="needs" className="translate-y-[-1px]" />
        {workspace.name} asks
      </h3>
      {isShown ? null : <Markdown text={reason} />}
      {may('message.send') && principal === 'people' ? (
        <form className="flex items-start gap-2" onSubmit={send}>
          <div className="min-w-0 flex-1">
            <Field
              label={`Answer ${workspace.name}`}
              hideLabel
              placeholder={`Answer ${workspace.name}`}
              value={text}
              onChange={(event) => write(event.target.value)}
            />
          </div>
          <Button type="submit" disabled={text.trim() === ''} className="h-9">
            Send
          </Button>
        </form>
      ) : null}
    </section>
  )
}
