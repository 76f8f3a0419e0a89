/**
 * Turns the events of a remote agent into ours. An event that comes twice (a snapshot after a reconnect) is passed on
 * once. Invariant: when the parser has an end, everything that came before the end has been returned.
 */
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
import { textOf } from '../../protocol/part.ts'
import type { BackendEvent, Finality } from '../backend.ts'
import { agentReason } from '../engine/failure/agent-errors.ts'
import type { EndEvent } from '../engine/turn-engine.ts'
import type { UpstreamIds } from './session.ts'

export interface UpstreamParser {
  readonly upstream: UpstreamIds
  /** The end so far; a task that waits for its caller may still continue. */
  readonly end: EndEvent | undefined
  /** The end is final: no more events are needed. */
  readonly isOver: boolean
  read(event: StreamResponse): BackendEvent[]
}

export function createUpstreamParser(known: UpstreamIds): UpstreamParser {
  let upstream = known
  let artifacts: Artifact[] = []
  let lastContent: MessageContent | undefined
  let state: TaskState | undefined
  let end: EndEvent | undefined
  let over = false

  const learnIds = ({ taskId, contextId }: { taskId?: string | undefined; contextId?: string | undefined }) => {
    upstream = { ...upstream, ...(taskId ? { taskId } : {}), ...(contextId ? { contextId } : {}) }
  }
  const takeStatus = (status: TaskStatus): BackendEvent[] => {
    const content = contentOf(status)
    end = endOf(status.state, content)
    const isChange = status.state !== state
    state = status.state
    // A repeated status is no activity: otherwise an agent that is polled could never stall.
    if (end !== undefined || content === undefined || jsonEqual(content, lastContent)) {
      return isChange ? [{ type: 'activity' }] : []
    }
    lastContent = content
    return [{ type: 'status', text: textOf(content.parts), said: content }]
  }
  const takeArtifact = (artifact: Artifact, append: boolean, lastChunk: boolean): BackendEvent[] => {
    // A reader drops what is appended to an artifact that it does not know.
    const isKnown = artifacts.some(({ artifactId }) => artifactId === artifact.artifactId)
    artifacts = mergeArtifact(artifacts, { artifact, append })
    return [{ type: 'artifact', artifact, append: append && isKnown, lastChunk }]
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
      learnIds(task === undefined ? (message ?? statusUpdate ?? artifactUpdate ?? {}) : { ...task, taskId: task.id })
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

function endOf(state: TaskState, content: MessageContent | undefined): EndEvent | undefined {
  if (!isFinal(state) && !isInterrupted(state)) return undefined
  const finality = FINALITIES[state]
  if (finality !== undefined) return { type: 'done', parts: [], finality, ...(content && { said: content }) }
  const reason = content === undefined ? '' : textOf(content.parts)
  const message = state === 'TASK_STATE_CANCELED' ? 'the remote agent cancelled its task' : 'the remote agent failed'
  return { type: 'failed', error: agentReason(reason === '' ? message : reason) }
}
