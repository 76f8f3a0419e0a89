/**
 * The other side's events become ours. The same thing told twice (a snapshot after a reconnect) is passed on once.
 * Invariant: when the story has an end, everything that the other side said before it has been given out.
 */
import { MoleculeError } from '../../errors.ts'
import {
  type Artifact,
  isFinal,
  isInterrupted,
  type MessageContent,
  type StreamResponse,
  type TaskState,
  type TaskStatus,
} from '../../protocol/a2a.ts'
import { jsonEqual } from '../../protocol/json.ts'
import { mergeArtifact } from '../../protocol/merge-artifact.ts'
import type { BackendEvent, Finality } from '../backend.ts'
import type { UpstreamIds } from './session.ts'

export type UpstreamEnd = BackendEvent & { readonly type: 'done' | 'failed' }

export interface UpstreamParser {
  readonly upstream: UpstreamIds
  /** How it ends as things stand; a task that waits for its caller may yet go on. */
  readonly end: UpstreamEnd | undefined
  /** The end is known for sure: nothing more needs to be heard. */
  readonly isOver: boolean
  read(event: StreamResponse): BackendEvent[]
}

export function createUpstreamParser(known: UpstreamIds): UpstreamParser {
  let upstream = known
  let artifacts: Artifact[] = []
  let said: MessageContent | undefined
  let state: TaskState | undefined
  let end: UpstreamEnd | undefined
  let over = false

  const learn = (names: { taskId?: string | undefined; contextId?: string | undefined }) => {
    const { taskId, contextId } = names
    upstream = { ...upstream, ...(taskId ? { taskId } : {}), ...(contextId ? { contextId } : {}) }
  }
  const takeStatus = (status: TaskStatus): BackendEvent[] => {
    const words = contentOf(status)
    end = endOf(status.state, words)
    const news = status.state !== state
    state = status.state
    // Told again is no sign of life: an agent that is only asked must be able to stall.
    if (end !== undefined || words === undefined || jsonEqual(words, said)) return news ? [{ type: 'activity' }] : []
    said = words
    return [{ type: 'status', text: textOf(words), said: words }]
  }
  const takeArtifact = (artifact: Artifact, append: boolean, lastChunk: boolean): BackendEvent[] => {
    artifacts = mergeArtifact(artifacts, { artifact, append })
    return [{ type: 'artifact', artifact, append, lastChunk }]
  }
  return {
    get upstream() {
      return upstream
    },
    get end() {
      return end
    },
    get isOver() {
      return over
    },
    read({ task, message, statusUpdate, artifactUpdate }) {
      learn(task === undefined ? (message ?? statusUpdate ?? artifactUpdate ?? {}) : { ...task, taskId: task.id })
      if (message !== undefined) {
        over = true
        const { parts, metadata } = message
        end = { type: 'done', parts, finality: 'completed', ...(metadata && { metadata }) }
        return []
      }
      if (artifactUpdate !== undefined) {
        const { artifact, append = false, lastChunk = false } = artifactUpdate
        return takeArtifact(artifact, append, lastChunk)
      }
      if (statusUpdate !== undefined) {
        const events = takeStatus(statusUpdate.status)
        over = end !== undefined
        return events
      }
      if (task === undefined) return []
      over = isFinal(task.status.state)
      const fresh = (task.artifacts ?? []).filter((artifact) => !artifacts.some((each) => jsonEqual(each, artifact)))
      const events = fresh.flatMap((artifact) => takeArtifact(artifact, false, over))
      return [...events, ...takeStatus(task.status)]
    },
  }
}

function contentOf({ message }: TaskStatus): MessageContent | undefined {
  if (message === undefined) return undefined
  const { parts, metadata } = message
  return { parts, ...(metadata && { metadata }) }
}

const FINALITIES: Readonly<Partial<Record<TaskState, Finality>>> = {
  TASK_STATE_COMPLETED: 'completed',
  TASK_STATE_INPUT_REQUIRED: 'input_required',
  TASK_STATE_AUTH_REQUIRED: 'auth_required',
  TASK_STATE_REJECTED: 'rejected',
}

function endOf(at: TaskState, said: MessageContent | undefined): UpstreamEnd | undefined {
  if (!isFinal(at) && !isInterrupted(at)) return undefined
  const finality = FINALITIES[at]
  if (finality !== undefined) return { type: 'done', parts: [], finality, ...(said && { said }) }
  const reason = said === undefined ? '' : textOf(said)
  const message = at === 'TASK_STATE_CANCELED' ? 'the remote agent cancelled its task' : 'the remote agent failed'
  return { type: 'failed', error: new MoleculeError('agent_failed', reason === '' ? message : reason) }
}

const textOf = ({ parts }: MessageContent): string => parts.map((part) => part.text ?? '').join('')
