/** What happened to one message, in sentences, with its attempts, times and cost. The same as `molecule explain`. */
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { readStory, type StoryView } from '../../../../src/client/story.ts'
import { client } from '../../api/client.ts'
import { keys } from '../../api/queries.ts'
import { Loading } from '../../ui/empty-state.tsx'
import { ReadFailure } from '../../ui/section.tsx'
import { CopyButton } from '../../ui/text/code-block.tsx'
import { Cost } from '../../ui/text/time.tsx'
import { countText, tookTime } from '../../ui/text/times.ts'
import { useRefreshOnChange } from '../refresh.ts'
import { ToldSteps } from '../told-steps.tsx'

/** Of the workspace's usage, to find the message in it. */
const USAGE_QUERY = { days: 30, messages: 500 }

export function StoryPane({ workspaceId, taskId }: { readonly workspaceId: string; readonly taskId: string }) {
  useRefreshOnChange(workspaceId, 'story', 'usage of messages')
  const story = useQuery({
    queryKey: keys.workspace(workspaceId, 'story', taskId),
    queryFn: () => readStory(client, taskId),
  })
  const usage = useQuery({
    queryKey: keys.workspace(workspaceId, 'usage of messages'),
    queryFn: () => client.call('GET /workspaces/{id}/usage', { id: workspaceId, ...USAGE_QUERY }),
  })
  if (story.data === undefined)
    return story.error ? <ReadFailure error={story.error} onRetry={() => story.refetch()} /> : <Loading />
  const used = usage.data?.messages.find((message) => message.task_id === taskId)
  const command = `bin/molecule explain ${taskId}`
  return (
    <div className="flex flex-col gap-4 text-second">
      <h3 className="font-[650] text-body">What happened</h3>
      <ol className="flex flex-col gap-2">
        <ToldSteps story={story.data} />
      </ol>
      <dl className="flex flex-col gap-1 border-line border-t pt-4">
        <Fact name="Attempts">{attemptsOf(story.data)}</Fact>
        {used ? <UsedFacts used={used} /> : null}
      </dl>
      <div className="flex items-center gap-2 rounded-button border border-line bg-surface py-0.5 pr-1 pl-3">
        <code title={command} className="min-w-0 flex-1 truncate font-mono text-time">
          {command}
        </code>
        <CopyButton text={command} />
      </div>
    </div>
  )
}

interface Used {
  readonly input_tokens: number | null
  readonly output_tokens: number | null
  readonly cost_usd: number | null
  readonly unknown_cost_turns: number
  readonly duration_ms: number | null
}

function UsedFacts({ used }: { readonly used: Used }) {
  const { input_tokens: input, output_tokens: output, duration_ms: duration } = used
  return (
    <>
      <Fact name="Worked">{duration === null ? <em>unknown</em> : tookTime(duration)}</Fact>
      <Fact name="Tokens">
        {input === null || output === null ? <em>unknown</em> : `${countText(input)} in · ${countText(output)} out`}
      </Fact>
      <Fact name="Cost">
        <Cost usd={used.cost_usd} hasUnknown={used.unknown_cost_turns > 0} />
      </Fact>
    </>
  )
}

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <div className="flex justify-between gap-4">
      <dt className="text-soft">{name}</dt>
      <dd className="text-right">{children}</dd>
    </div>
  )
}

const attemptsOf = ({ steps }: StoryView): number => steps.filter(({ type }) => type === 'started').length
