/** The state of a task in the words of the page. */
import type { DotState } from '../../ui/dot.tsx'

interface StateLook {
  readonly word: string
  readonly dot: DotState
  readonly className: string
}

const STATES: Readonly<Record<string, StateLook>> = {
  TASK_STATE_SUBMITTED: { word: 'queued', dot: 'offline', className: 'text-soft' },
  TASK_STATE_WORKING: { word: 'running', dot: 'working', className: 'text-working' },
  TASK_STATE_INPUT_REQUIRED: { word: 'waiting for you', dot: 'needs', className: 'text-needs' },
  TASK_STATE_AUTH_REQUIRED: { word: 'waiting for you', dot: 'needs', className: 'text-needs' },
  TASK_STATE_COMPLETED: { word: 'answered', dot: 'online', className: 'text-soft' },
  TASK_STATE_FAILED: { word: 'failed', dot: 'needs', className: 'text-needs' },
  TASK_STATE_CANCELED: { word: 'stopped', dot: 'paused', className: 'text-soft' },
  TASK_STATE_REJECTED: { word: 'refused', dot: 'paused', className: 'text-soft' },
}

const UNKNOWN: StateLook = { word: 'unknown', dot: 'offline', className: 'text-soft italic' }

export const stateLook = (state: string): StateLook => STATES[state] ?? UNKNOWN

export const isOpenState = (state: string): boolean => /SUBMITTED|WORKING|INPUT_REQUIRED|AUTH_REQUIRED/.test(state)
