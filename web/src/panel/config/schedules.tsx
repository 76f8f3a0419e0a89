/** Messages that the clock sends to a workspace: list, add, pause, run now, remove. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { ScheduleView } from '../../../../src/client/views.ts'
import { client } from '../../api/client.ts'
import { keys, useMay } from '../../api/queries.ts'
import { Button } from '../../ui/button.tsx'
import { Chip } from '../../ui/chip.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { Menu } from '../../ui/menu.tsx'
import { Loaded, Row, Rows, Section } from '../../ui/section.tsx'
import { Time } from '../../ui/text/time.tsx'
import { showToast } from '../../ui/toasts.tsx'
import { stateLook } from '../delegations/task-state.ts'
import { refresh, usePanelAction, useRefreshOnChange } from '../refresh.ts'
import type { TabProps } from '../tab.ts'
import { NewScheduleDialog } from './new-schedule.tsx'

export function Schedules({ workspace }: TabProps) {
  const may = useMay()
  const [isAdding, setAdding] = useState(false)
  useRefreshOnChange(workspace.id, 'schedules')
  const schedules = useQuery({
    queryKey: keys.workspace(workspace.id, 'schedules'),
    queryFn: () => client.all('GET /schedules', 'schedules', { workspace: workspace.id }),
  })
  const add = may('schedule.handle') ? <Button onClick={() => setAdding(true)}>New schedule</Button> : undefined
  return (
    <Section title="Schedules" count={schedules.data?.length} action={add}>
      <Loaded query={schedules}>{(data) => <ScheduleList schedules={data} name={workspace.name} />}</Loaded>
      {isAdding ? <NewScheduleDialog workspace={workspace} onClose={() => setAdding(false)} /> : null}
    </Section>
  )
}

function ScheduleList({ schedules, name }: { readonly schedules: readonly ScheduleView[]; readonly name: string }) {
  if (schedules.length === 0)
    return <EmptyState title="No schedules">Messages that {name} gets at set times are listed here.</EmptyState>
  return (
    <Rows>
      {schedules.map((schedule) => (
        <ScheduleRow key={schedule.id} schedule={schedule} />
      ))}
    </Rows>
  )
}

function ScheduleRow({ schedule }: { readonly schedule: ScheduleView }) {
  const may = useMay()
  const { id, workspace_id: workspaceId, paused, name } = schedule
  const { isBusy, run } = usePanelAction()
  const [isRemoving, setRemoving] = useState(false)
  const act = async (work: () => Promise<unknown>, done: string) => {
    if (await run(work)) showToast(done)
    refresh(workspaceId, 'schedules')
  }
  const pause = (isPaused: boolean) =>
    client.call('PATCH /schedules/{schedule}', { schedule: id, body: { paused: isPaused } })
  const send = () => client.call('POST /schedules/{schedule}/run', { schedule: id })
  const items = [
    paused
      ? {
          title: 'Resume',
          onChoose: () => act(() => pause(false), `“${name}” goes on`),
        }
      : {
          title: 'Pause',
          onChoose: () => act(() => pause(true), `“${name}” is paused`),
        },
    { title: 'Remove', onChoose: () => setRemoving(true) },
  ]
  const actions = may('schedule.handle') ? (
    <>
      <Button disabled={isBusy} onClick={() => act(send, `“${name}” was sent`)}>
        Run now<span className="sr-only">{` ${name}`}</span>
      </Button>
      <Menu label={`Actions for ${name}`} items={items} />
    </>
  ) : undefined
  return (
    <Row actions={actions}>
      <p className="flex flex-wrap items-center gap-2">
        <span className="min-w-0 break-words">{name}</span>
        <Chip mono>{schedule.cron}</Chip>
        {paused ? <Chip>paused</Chip> : null}
      </p>
      <p className="text-faint text-time">
        <NextTime schedule={schedule} /> {schedule.last === null ? null : <LastResult last={schedule.last} />}
      </p>
      {isRemoving ? (
        <RemoveDialog
          schedule={schedule}
          onClose={() => setRemoving(false)}
          onRemove={() =>
            act(() => client.call('DELETE /schedules/{schedule}', { schedule: id }), `“${name}” is removed`)
          }
        />
      ) : null}
    </Row>
  )
}

/** A next time is always ahead, so the day is named with the hour. */
function NextTime({ schedule: { paused, next_at: next, time_zone: zone, note } }: { readonly schedule: ScheduleView }) {
  if (paused) return 'Paused.'
  if (next === null) return note ?? 'It does not run again.'
  const when = new Date(next).toLocaleString('en-GB', {
    timeZone: zone,
    day: 'numeric',
    month: 'short',
    hour: '2-digit',
    minute: '2-digit',
  })
  return `Next ${when} (${zone}).${note === null ? '' : ` ${note}.`}`
}

function LastResult({ last }: { readonly last: NonNullable<ScheduleView['last']> }) {
  const word = last.state === null ? 'sent' : stateLook(last.state).word
  return (
    <>
      Last {last.at === null ? null : <Time at={last.at} />}: {word}
      {last.text === '' ? '.' : `, “${last.text}”`}
    </>
  )
}

interface RemoveDialogProps {
  readonly schedule: ScheduleView
  readonly onClose: () => void
  readonly onRemove: () => void
}

function RemoveDialog({ schedule, onClose, onRemove }: RemoveDialogProps) {
  const remove = () => {
    onClose()
    onRemove()
  }
  return (
    <Dialog
      title="Remove this schedule?"
      onClose={onClose}
      actions={
        <>
          <Button onClick={remove}>Remove</Button>
          <Button variant="ink" onClick={onClose}>
            Keep it
          </Button>
        </>
      }
    >
      <p className="text-soft">“{schedule.name}” is not sent any more. The answers that it had so far stay.</p>
    </Dialog>
  )
}
