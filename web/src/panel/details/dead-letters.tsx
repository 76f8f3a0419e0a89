/** The messages of a workspace that failed for good: why, and the way out. */

import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { ApiAnswer } from '../../../../src/api/api.ts'
import { truncate } from '../../../../src/truncate.ts'
import { client } from '../../api/client.ts'
import { keys, useMay } from '../../api/queries.ts'
import { beginSentence, plainReason } from '../../api/sentence.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Loaded, Row, Rows, Section } from '../../ui/section.tsx'
import { Time } from '../../ui/text/time.tsx'
import { showToast } from '../../ui/toasts.tsx'
import { refresh, usePanelAction, useRefreshOnChange } from '../refresh.ts'
import type { TabProps } from '../tab.ts'

export function DeadLetters({ workspace }: TabProps) {
  useRefreshOnChange(workspace.id, 'dead letters')
  const letters = useQuery({
    queryKey: keys.workspace(workspace.id, 'dead letters'),
    queryFn: () => client.all('GET /workspaces/{id}/dead-letters', 'dead_letters', { id: workspace.id }),
  })
  return (
    <Section title="Failed messages" count={letters.data?.length}>
      <Loaded query={letters}>
        {(data) =>
          data.length === 0 ? (
            <p className="text-second text-soft">
              A message that failed for good waits here until you run it again or discard it.
            </p>
          ) : (
            <Rows>
              {data.map((letter) => (
                <DeadLetterRow key={letter.id} letter={letter} workspaceId={workspace.id} />
              ))}
            </Rows>
          )
        }
      </Loaded>
    </Section>
  )
}

type DeadLetterView = ApiAnswer<'GET /workspaces/{id}/dead-letters'>['dead_letters'][number]

interface DeadLetterRowProps {
  readonly letter: DeadLetterView
  readonly workspaceId: string
}

function DeadLetterRow({ letter, workspaceId }: DeadLetterRowProps) {
  const may = useMay()
  const { isBusy, run } = usePanelAction()
  const [isDiscarding, setDiscarding] = useState(false)
  const target = { id: workspaceId, message: letter.id }
  const replay = async () => {
    const isDone = await run(() => client.call('POST /workspaces/{id}/dead-letters/{message}/replay', target))
    if (isDone) showToast(`“${textOf(letter)}” runs again`)
    refresh(workspaceId, 'dead letters')
  }
  const discard = async () => {
    setDiscarding(false)
    const isDone = await run(() => client.call('DELETE /workspaces/{id}/dead-letters/{message}', target))
    if (isDone) showToast(`“${textOf(letter)}” discarded`)
    refresh(workspaceId, 'dead letters')
  }
  const actions = may('dead-letter.handle') ? (
    <>
      <Button variant="quiet" disabled={isBusy} onClick={() => setDiscarding(true)}>
        Discard<span className="sr-only">{` “${textOf(letter)}”`}</span>
      </Button>
      <Button disabled={isBusy} onClick={replay}>
        Run again<span className="sr-only">{` “${textOf(letter)}”`}</span>
      </Button>
    </>
  ) : undefined
  return (
    <Row actions={actions}>
      <p dir="auto" className="line-clamp-2 font-[550]">
        {textOf(letter)}
      </p>
      <p className="text-needs text-second">{reasonText(letter)}</p>
      {letter.detail === undefined ? null : (
        <p className="line-clamp-3 break-words font-mono text-soft text-time">{letter.detail}</p>
      )}
      <p className="text-faint text-time">
        From {letter.sender.name || letter.sender.kind}, <Time at={letter.at} />
      </p>
      {isDiscarding ? (
        <Dialog
          title="Discard this message?"
          onClose={() => setDiscarding(false)}
          actions={
            <>
              <Button onClick={discard}>Discard</Button>
              <Button variant="ink" onClick={() => setDiscarding(false)}>
                Keep it
              </Button>
            </>
          }
        >
          <p className="text-soft">“{textOf(letter)}” is not answered any more. Its story stays in the activity.</p>
        </Dialog>
      ) : null}
    </Row>
  )
}

const TEXT_CHARACTERS = 80

function textOf({ message }: DeadLetterView): string {
  const text = message.parts
    .map((part) => part.text ?? '')
    .join(' ')
    .replaceAll(/\s+/g, ' ')
    .trim()
  if (text === '') return 'A message without text'
  return truncate(text, TEXT_CHARACTERS + 1)
}

function reasonText({ reason, failures, losses }: DeadLetterView): string {
  const attempts = failures + losses
  const sentence = beginSentence(plainReason(reason))
  return attempts > 1 ? `${sentence}, on all ${attempts} attempts.` : `${sentence}.`
}
