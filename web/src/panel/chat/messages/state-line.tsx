/** The state of a message under it, with what a person may do about it: Run again, Cancel, Why. */

import { useMutation, useQuery } from '@tanstack/react-query'
import { Fragment, type ReactNode, useState } from 'react'
import type { ChatEntry, ChatHistory } from '../../../../../src/client/live-conversation.ts'
import { readStory } from '../../../../../src/client/story.ts'
import { MINUTE_MS } from '../../../../../src/duration.ts'
import { client, reasonOf } from '../../../api/client.ts'
import { keys, useMay } from '../../../api/queries.ts'
import { classNames } from '../../../ui/class-names.ts'
import { CodeBlock } from '../../../ui/text/code-block.tsx'
import { RunningSeconds, useNow } from '../../../ui/text/time.tsx'
import { tookTime } from '../../../ui/text/times.ts'
import { showToast } from '../../../ui/toasts.tsx'
import type { TabProps } from '../../tab.ts'
import { ToldSteps } from '../../told-steps.tsx'
import { sendMessage } from '../writing/outgoing.ts'
import { messageState, type StatePart, tokensText } from './message-state.ts'
import { againId, expectedWaitMs, queuedBefore, wasRunAgain } from './timeline.ts'

interface StateLineProps extends TabProps {
  readonly entry: ChatEntry
  readonly history: ChatHistory
}

export function StateLine({ entry, history, workspace }: StateLineProps) {
  const [isOpen, setOpen] = useState(false)
  const may = useMay()
  const { parts, isRed, action, hasStory } = messageState({
    ...entry,
    place: queuedBefore(history, entry),
    wasRunAgain: wasRunAgain(history, entry),
  })
  const act = useAction(entry, workspace.id)
  // What was cancelled can be run again at once: only the same action is done.
  const isDone = act.isPending || (act.isSuccess && act.variables === action)
  const isAllowed = action !== undefined && may(ACTIONS[action])
  return (
    <div className="flex min-w-0 max-w-full flex-col items-end gap-2 self-stretch">
      <p
        data-state={entry.state}
        title={entry.state === 'failed' ? entry.reason : tokensText(entry)}
        className={classNames('max-w-full break-words text-right text-time', isRed ? 'text-needs' : 'text-faint')}
      >
        {parts.map((part, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the parts have a fixed order.
          <Fragment key={index}>
            {index === 0 ? null : ' · '}
            <Part part={part} />
          </Fragment>
        ))}
        {entry.state === 'queued' ? <ExpectedWait entry={entry} history={history} /> : null}
        {isAllowed || hasStory ? ' · ' : null}
        <span className="whitespace-nowrap">
          {action !== undefined && isAllowed ? (
            <LineButton onClick={() => act.mutate(action)} disabled={isDone}>
              {TITLES[action]}
            </LineButton>
          ) : null}
          {isAllowed && hasStory ? ' · ' : null}
          {hasStory ? (
            <LineButton aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
              Why
            </LineButton>
          ) : null}
        </span>
      </p>
      {isOpen ? <Story entry={entry} workspaceId={workspace.id} /> : null}
    </div>
  )
}

const ACTIONS = { replay: 'dead-letter.handle', 'run again': 'message.send', cancel: 'task.cancel' } as const
const TITLES = { replay: 'Run again', 'run again': 'Run again', cancel: 'Cancel' } as const

function Part({ part: { text, isUnknown, since } }: { readonly part: StatePart }) {
  if (since !== undefined) return <RunningSeconds since={since} />
  return isUnknown ? <em>{text}</em> : text
}

interface LineButtonProps {
  readonly onClick: () => void
  readonly disabled?: boolean
  readonly 'aria-expanded'?: boolean
  readonly children: ReactNode
}

const LineButton = (props: LineButtonProps) => (
  <button
    type="button"
    className="font-[600] text-accent hover:underline disabled:opacity-50 max-md:-my-3 max-md:px-1 max-md:py-3"
    {...props}
  />
)

/** "about 3 min", where the last answers allow to say it. */
function ExpectedWait({ entry, history }: Omit<StateLineProps, 'workspace'>) {
  const waitMs = expectedWaitMs(history, entry, useNow())
  if (waitMs === undefined) return null
  return waitMs < MINUTE_MS ? ' · less than a minute' : ` · about ${tookTime(waitMs)}`
}

/** No way to do it twice: a replay is one replay, and "Run again" always has the same message id. */
function useAction(entry: ChatEntry, workspaceId: string) {
  return useMutation({
    mutationFn: async (action: keyof typeof ACTIONS) => {
      if (action === 'cancel') await client.cancelTask(workspaceId, entry.task_id)
      if (action === 'replay') {
        const letter = { id: workspaceId, message: entry.id }
        await client.call('POST /workspaces/{id}/dead-letters/{message}/replay', letter)
      }
      if (action === 'run again') await runAgain(entry, workspaceId)
    },
    onError: (error) => showToast(reasonOf(error)),
  })
}

/** The message as it was sent, files included, as a new message of the same conversation. */
async function runAgain(entry: ChatEntry, workspaceId: string): Promise<void> {
  const { history = [], contextId } = await client.getTask(workspaceId, entry.task_id)
  const sent = history.find(({ messageId }) => messageId === entry.sender_message_id)
  const files = (sent?.parts ?? []).filter(({ raw }) => raw !== undefined)
  sendMessage({
    workspaceId,
    contextId,
    messageId: againId(entry),
    text: entry.text,
    files: files.map(({ raw = '', filename = 'file', mediaType = '' }, index) => ({
      key: `${entry.id}-${index}`,
      file: new File([Uint8Array.from(atob(raw), (sign) => sign.charCodeAt(0))], filename, { type: mediaType }),
    })),
  })
}

/** What happened to the message, step by step, and for owners what the program printed. */
function Story({ entry, workspaceId }: { readonly entry: ChatEntry; readonly workspaceId: string }) {
  const { data: story, error } = useQuery({
    queryKey: keys.workspace(workspaceId, 'story', entry.id),
    queryFn: () => readStory(client, entry.id),
    staleTime: 0,
  })
  const { detail } = entry
  const isTold = detail === undefined || story?.steps.some(({ text }) => text.includes(detail))
  return (
    <div className="w-full min-w-0 rounded-box border border-line p-3 text-left text-second">
      {error ? <p>{reasonOf(error)}</p> : null}
      <ol className="flex flex-col gap-1">{story === undefined ? null : <ToldSteps story={story} />}</ol>
      {isTold ? null : <CodeBlock code={detail} />}
    </div>
  )
}
