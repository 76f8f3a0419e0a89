/** A message on its way: it keeps its text until the platform has it, and says why it has not. */
import { Button } from '../../../ui/button.tsx'
import { dropOutgoing, sendAgain, type UnsentMessage } from '../writing/outgoing.ts'
import { Bubble } from './bubble.tsx'

export function OutgoingBubble({ outgoing }: { readonly outgoing: UnsentMessage }) {
  const { messageId, text, files, state, problem } = outgoing
  return (
    <article aria-label="Message on its way" className="flex min-w-0 flex-col items-end gap-1.5">
      <Bubble text={text} files={files.map(({ file }) => ({ name: file.name, bytes: file.size }))} />
      {state === 'refused' ? (
        <>
          <p data-state="refused" className="text-right text-needs text-time">
            not sent: {problem}
          </p>
          <div className="flex gap-2">
            <Button onClick={() => sendAgain(messageId)}>Send again</Button>
            <Button variant="quiet" onClick={() => dropOutgoing([messageId])}>
              Discard
            </Button>
          </div>
        </>
      ) : (
        <p data-state={state} className="text-right text-faint text-time">
          {state === 'waiting' ? `not sent yet: ${problem} It is sent by itself when that is over.` : 'sending'}
          {state === 'waiting' ? (
            <>
              {' · '}
              <button
                type="button"
                className="font-[600] text-accent hover:underline max-md:-my-3 max-md:px-1 max-md:py-3"
                onClick={() => dropOutgoing([messageId])}
              >
                Discard
              </button>
            </>
          ) : null}
        </p>
      )}
    </article>
  )
}
