/** The story of a message as the page tells it. Pure. */
import type { StoryView } from '../../../src/client/story.ts'
import { asSentence, plainReason } from '../api/sentence.ts'

/** The platform's steps as whole sentences; the sender is named first. */
export function toldSteps({
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
