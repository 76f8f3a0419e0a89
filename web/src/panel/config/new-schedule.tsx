/** The dialog "New schedule". The platform checks the times and the zone; its reason stands under the form. */
import { type FormEvent, useId, useState } from 'react'
import type { WorkspaceSummary } from '../../../../src/client/views.ts'
import { client, reasonOf } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Field, TextArea } from '../../ui/field.tsx'
import { useDraft } from '../../ui/use-draft.ts'
import { refresh } from '../refresh.ts'

export interface NewScheduleDialogProps {
  readonly workspace: WorkspaceSummary
  readonly onClose: () => void
}

const TIMES = [
  { cron: '0 9 * * 1-5', title: 'Weekdays at 9' },
  { cron: '0 9 * * *', title: 'Every day at 9' },
  { cron: '0 * * * *', title: 'Every hour' },
]

export function NewScheduleDialog({ workspace, onClose }: NewScheduleDialogProps) {
  const form = useId()
  const { value, change, forget } = useDraft(`${workspace.id}.config.schedule`, {
    text: '',
    cron: '0 9 * * 1-5',
    zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    report: '',
  })
  const { text, cron, zone, report = '' } = value
  const [problem, setProblem] = useState<string>()
  const save = async (event: FormEvent) => {
    event.preventDefault()
    if (text.trim() === '') return setProblem('Write the message first.')
    try {
      const body = {
        text: text.trim(),
        cron: cron.trim(),
        time_zone: zone.trim(),
        ...(report.trim() && { report_to: report.trim() }),
      }
      await client.call('POST /workspaces/{id}/schedules', { id: workspace.id, body })
    } catch (thrown) {
      return setProblem(reasonOf(thrown))
    }
    forget()
    refresh(workspace.id, 'schedules')
    onClose()
  }
  const cancel = () => {
    forget()
    onClose()
  }
  return (
    <Dialog
      title="New schedule"
      onClose={onClose}
      actions={
        <>
          <Button onClick={cancel}>Cancel</Button>
          <Button variant="ink" type="submit" form={form}>
            Add
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={save} className="flex flex-col gap-4">
        <TextArea label="Message" rows={3} value={text} onChange={(event) => change({ text: event.target.value })} />
        <div className="flex flex-col gap-2">
          <Field
            label="When"
            value={cron}
            onChange={(event) => change({ cron: event.target.value })}
            hint="Minute, hour, day, month, weekday: 0 9 * * 1-5"
            className="font-mono"
          />
          <div className="flex flex-wrap gap-2">
            {TIMES.map((time) => (
              <Button key={time.cron} onClick={() => change({ cron: time.cron })}>
                {time.title}
              </Button>
            ))}
          </div>
        </div>
        <Field label="Time zone" value={zone} onChange={(event) => change({ zone: event.target.value })} />
        <Field
          label="Report to"
          value={report}
          onChange={(event) => change({ report: event.target.value })}
          hint="A chat for the answers: owners, or channel/place"
          error={problem}
        />
      </form>
    </Dialog>
  )
}
