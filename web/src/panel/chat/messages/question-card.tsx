/** A question of the agent. The composer answers it. */

import type { ChatEntry } from '../../../../../src/client/live-conversation.ts'
import { Dot } from '../../../ui/dot.tsx'
import { Markdown } from '../../../ui/text/markdown.tsx'
import type { TabProps } from '../../tab.ts'

interface QuestionCardProps extends TabProps {
  readonly entry: ChatEntry
}

export function QuestionCard({ entry: { reason = '', reply }, workspace }: QuestionCardProps) {
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
    </section>
  )
}
