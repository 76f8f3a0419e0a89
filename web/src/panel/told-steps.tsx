/** The story of a message as the page tells it: the lines of a list, one for each step. */
import type { StoryView } from '../../../src/client/story.ts'
import { asSentence, plainReason } from '../api/sentence.ts'
import { clockTime } from '../ui/text/times.ts'

export function ToldSteps({ story }: { readonly story: StoryView }) {
  return toldSteps(story).map(({ key, at, text }) => (
    <li key={key} className="flex gap-3">
      <time dateTime={at} className="shrink-0 text-faint text-time leading-5">
        {clockTime(new Date(at))}
      </time>
      <span className="min-w-0 break-words">{text}</span>
    </li>
  ))
}

/** The platform's steps as whole sentences; the sender is named first. */
function toldSteps({
  steps,
  sender,
}: StoryView): { readonly key: string; readonly at: string; readonly text: string }[] {
  return steps.map(({ at, type, text }, index) => ({
    key: `${index} ${type}`,
    at,
    text:
      type === 'admitted'
        ? `${sender.name || 'A person'} sent this message through ${sender.door}.`
        : asSentence(plainReason(text)),
  }))
}
