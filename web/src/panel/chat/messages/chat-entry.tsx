/** One message and what came of it: the message itself with its state, the tools, the answer, and what waits for a person. */
import { memo } from 'react'
import type { ChatEntry, ChatHistory } from '../../../../../src/client/live-conversation.ts'
import { printableName } from '../../../../../src/printable.ts'
import { useMe } from '../../../api/queries.ts'
import { classNames } from '../../../ui/class-names.ts'
import { Markdown } from '../../../ui/text/markdown.tsx'
import type { TabProps } from '../../tab.ts'
import { Artifacts } from './artifacts.tsx'
import { Bubble } from './bubble.tsx'
import { PermissionCard } from './permission-card.tsx'
import { QuestionCard } from './question-card.tsx'
import { senderWords } from './sender-words.ts'
import { StateLine } from './state-line.tsx'
import { wasRunAgain } from './timeline.ts'
import { ToolLines } from './tool-lines.tsx'

export interface ChatEntryProps extends TabProps {
  readonly entry: ChatEntry
  readonly history: ChatHistory
}

/** An answered message does not change when others do. A queued one has its place, and others can be run again. */
export const ChatEntryView = memo(ChatEntryContent, (before, after) => {
  const { state } = after.entry
  if (state !== 'answered' && wasRunAgain(before.history, after.entry) !== wasRunAgain(after.history, after.entry))
    return false
  const isSame = before.entry === after.entry && before.workspace.name === after.workspace.name
  return isSame && state !== 'queued' && before.workspace.working_dir === after.workspace.working_dir
})

function ChatEntryContent({ entry, history, workspace }: ChatEntryProps) {
  const { reply, tools, state, ask } = entry
  const isRunning = state === 'running'
  const isCut = state === 'stopped' && reply?.partial === true
  return (
    <article aria-label={`Message of ${printableName(entry.sender.name)}`} className="flex min-w-0 flex-col gap-3">
      <MessageText entry={entry} history={history} workspace={workspace} />
      {tools.length > 0 || reply !== undefined || isRunning ? (
        <div className="flex min-w-0 flex-col gap-1.5">
          <ToolLines
            tools={tools}
            isRunning={isRunning}
            workspace={workspace}
            isWaiting={state === 'waiting_for_you'}
            hasMore={entry.more_tools === true}
          />
          {reply === undefined || reply.text === '' ? (
            <Working isShown={isRunning && !tools.some((tool) => tool.state === 'started')} />
          ) : (
            // Screen readers read it when it is complete.
            <div
              aria-live="polite"
              aria-busy={isRunning}
              className={classNames(isRunning && 'streaming-caret', isCut && 'text-soft')}
            >
              <Markdown text={reply.text} isStreaming={isRunning || isCut} />
              {isCut ? <PartialNote /> : null}
            </div>
          )}
          {reply === undefined ? null : <Artifacts taskId={entry.task_id} artifacts={reply.artifacts} />}
        </div>
      ) : null}
      {state === 'answered' && entry.reason !== undefined ? (
        <p className="border-line border-l-2 pl-3 text-second text-soft">{entry.reason}</p>
      ) : null}
      {state === 'waiting_for_you' && ask !== undefined ? <PermissionCard ask={ask} workspace={workspace} /> : null}
      {state === 'waiting_for_you' && ask === undefined ? <QuestionCard entry={entry} workspace={workspace} /> : null}
    </article>
  )
}

const PartialNote = () => (
  <p className="mt-3 border-edge border-t border-dashed pt-2 text-faint text-time">
    A partial answer: it was stopped here.
  </p>
)

/** The caret alone, until the agent writes or uses a tool. */
const Working = ({ isShown }: { readonly isShown: boolean }) =>
  isShown ? <span aria-hidden="true" className="caret inline-block h-4 w-[7px] bg-ink" /> : null

function MessageText({ entry, history, workspace }: ChatEntryProps) {
  const me = useMe()
  const { sender, text, attachments } = entry
  const line = <StateLine entry={entry} history={history} workspace={workspace} />
  if (sender.kind !== 'person') {
    const { name, verb } = senderWords(sender)
    return (
      <div className="min-w-0">
        <div className="min-w-0 whitespace-pre-wrap break-words border-line border-l-2 pl-3 text-second text-soft">
          <span className="font-[600] text-ink">{name}</span> {verb}: {text}
        </div>
        <div className="mt-1 pl-3">{line}</div>
      </div>
    )
  }
  const isMine = sender.name === me?.name
  return (
    <div className="flex min-w-0 flex-col items-end gap-1.5">
      {entry.answers === undefined ? null : <AskedQuestion name={workspace.name} question={entry.answers} />}
      {isMine ? null : <span className="text-faint text-time">{printableName(sender.name)}</span>}
      <Bubble text={text} files={attachments} />
      {line}
    </div>
  )
}

/** What this message answered. The turn that asked goes on at its own message. */
const AskedQuestion = ({ name, question }: { readonly name: string; readonly question: string }) => (
  <div className="mb-1.5 min-w-0 self-stretch border-line border-s-2 ps-3 text-soft">
    <p className="font-[600] text-ink">{name} asked</p>
    <Markdown text={question} />
  </div>
)
