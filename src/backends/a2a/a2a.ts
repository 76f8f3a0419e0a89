/**
 * The `a2a` backend: a relay to a remote agent, found by its card, in whichever version it speaks. Nothing it says is
 * lost on the way. Invariant: a message is sent once the other side has named its task; every later attempt asks for
 * that task. The URL is the admin's own word and may be private.
 */
import { type A2aClient, createA2aClient } from '../../client/a2a-client.ts'
import { createOutbound } from '../../client/outbound.ts'
import { MoleculeError, toMoleculeError } from '../../errors.ts'
import type { StreamResponse } from '../../protocol/a2a.ts'
import { sleep } from '../../wait.ts'
import type { Backend, BackendContext, BackendDefinition, BackendEvent, Turn, Validation } from '../backend.ts'
import { ENDPOINT_OPTIONS, type Endpoint, readEndpoint } from '../endpoint.ts'
import { turnCanceled } from '../engine/turn-engine.ts'
import { createUpstreamParser, type UpstreamParser } from './parse.ts'
import {
  outgoingMessage,
  readUpstreamNote,
  SENDING_NOTE,
  UPSTREAM_NOTE,
  writeSession,
  writeUpstreamNote,
} from './session.ts'

const POLL_MS = 1000
const CANCEL_MS_MAX = 5000

export const a2a: BackendDefinition = {
  name: 'a2a',
  summary: 'relay to a remote A2A agent, 1.0 or 0.3, found by its card',
  options: {
    url: "the agent's card or base URL",
    ...ENDPOINT_OPTIONS,
  },
  startsNothing: true,
  reportsTools: false,
  isFree: true,
  create: (options, context) => createA2a(readEndpoint(options, context.environment), context),
}

function createA2a({ url, headers, stallMs }: Endpoint, context: BackendContext): Backend {
  const client = createA2aClient({ url, headers, outbound: context.outbound ?? createOutbound() })
  const closing = new AbortController()
  return {
    name: a2a.name,
    stallMs,
    validate: (signal) => validate(client, signal),
    run: (turn, signal) => relay(turn, { client, context }, AbortSignal.any([signal, closing.signal])),
    close() {
      closing.abort('closed')
      return Promise.resolve()
    },
  }
}

async function validate(client: A2aClient, signal: AbortSignal): Promise<Validation> {
  try {
    const { version, name } = await client.interface(signal)
    return { ok: true, version: `A2A ${version}`, ...(name !== '' && { note: `the agent calls itself ${name}` }) }
  } catch (error) {
    return { ok: false, problem: `${(error as Error).message}.`, remedy: 'Check the url and its credentials.' }
  }
}

interface RelayContext {
  readonly client: A2aClient
  readonly context: BackendContext
}

async function* relay(turn: Turn, relayContext: RelayContext, signal: AbortSignal): AsyncIterable<BackendEvent> {
  const noted = readUpstreamNote(turn)
  const story = createUpstreamParser(noted ?? {})
  try {
    stopIfAborted(signal)
    if (noted === undefined) yield* sendAndStream(turn, { ...relayContext, story }, signal)
    if (story.end === undefined) yield* followTask({ ...relayContext, story }, signal)
    const { upstream } = story
    const waiting = story.end?.type === 'done' && WAITING_FINALITIES.has(story.end.finality)
    yield { type: 'session', token: writeSession(upstream, turn.request.task_id, waiting) }
    if (story.end !== undefined) yield story.end
  } catch (thrown) {
    if (signal.reason === 'canceled') await cancelUpstream(story, relayContext)
    yield { type: 'failed', error: signal.aborted ? turnCanceled(thrown) : toMoleculeError(thrown) }
  }
}

const WAITING_FINALITIES: ReadonlySet<string> = new Set(['input_required', 'auth_required'])

interface RelayTurnContext extends RelayContext {
  readonly story: UpstreamParser
}

/** Sends and listens as long as the connection holds. From the first answer on, the other side's task is noted. */
async function* sendAndStream(
  turn: Turn,
  relayTurn: RelayTurnContext,
  signal: AbortSignal,
): AsyncIterable<BackendEvent> {
  const { client, story } = relayTurn
  const message = outgoingMessage(turn)
  const { streaming } = await client.interface(signal)
  yield { type: 'note', key: SENDING_NOTE, value: message.messageId }
  stopIfAborted(signal)
  let noted: string | undefined
  const patient = sendSignal(signal, () => noted !== undefined)
  const outgoing = { message, traceparent: turn.env['TRACEPARENT'] }
  const answers = streaming ? client.stream(outgoing, patient) : once(client.send(outgoing, patient))
  try {
    for await (const event of answers) {
      const told = story.read(event)
      const { upstream } = story
      if (upstream.taskId !== noted && event.message === undefined) {
        noted = upstream.taskId
        yield { type: 'note', key: UPSTREAM_NOTE, value: writeUpstreamNote(upstream) }
        yield { type: 'session', token: writeSession(upstream, turn.request.task_id, false) }
        stopIfAborted(signal)
      }
      yield* told
      if (story.isOver) return
    }
  } catch (thrown) {
    const error = toMoleculeError(thrown)
    if (message.taskId !== undefined && noted === undefined && TASK_GONE_CODES.has(error.code)) {
      throw new MoleculeError('session_lost', 'the remote agent no longer waits for this answer', { cause: error })
    }
    // A connection that broke is no end: the task goes on over there, and it is known by name.
    if (noted === undefined || error.code !== 'timeout') throw error
  }
}

/**
 * The signal for a send. What is cancelled before the other side has named its task could not be cancelled there, so
 * that name is waited for, for a moment; every other end is at once.
 */
function sendSignal(signal: AbortSignal, isNamed: () => boolean): AbortSignal {
  const patient = new AbortController()
  const end = () => patient.abort(signal.reason)
  const hear = () => {
    if (signal.reason !== 'canceled' || isNamed()) return end()
    setTimeout(end, CANCEL_MS_MAX).unref()
  }
  signal.addEventListener('abort', hear, { once: true })
  return patient.signal
}

const TASK_GONE_CODES: ReadonlySet<string> = new Set(['not_found', 'unsupported_operation'])

async function* once(answer: Promise<StreamResponse>): AsyncIterable<StreamResponse> {
  yield await answer
}

/** The task as it is, then its stream, again and again until it ends: agents without streams are only asked. */
async function* followTask(
  { client, context, story }: RelayTurnContext,
  signal: AbortSignal,
): AsyncIterable<BackendEvent> {
  const { taskId } = story.upstream
  if (taskId === undefined) throw new MoleculeError('no_end', 'the remote agent ended without an answer')
  let { streaming } = await client.interface(signal)
  for (;;) {
    yield* story.read({ task: await client.get(taskId, signal) })
    if (story.end !== undefined) return
    if (streaming) {
      try {
        for await (const event of client.subscribe(taskId, signal)) {
          yield* story.read(event)
          if (story.isOver) return
        }
      } catch (thrown) {
        const error = toMoleculeError(thrown)
        // It broke, it ended before it could be listened to, or it cannot be listened to at all: asking tells.
        if (error.code !== 'unsupported_operation' && error.code !== 'timeout') throw error
        streaming = error.code === 'timeout'
      }
    }
    await sleep(context.clock, POLL_MS, signal)
    stopIfAborted(signal)
  }
}

async function cancelUpstream({ upstream, end }: UpstreamParser, { client, context }: RelayContext): Promise<void> {
  if (upstream.taskId === undefined || end !== undefined) return
  try {
    await client.cancel(upstream.taskId, AbortSignal.timeout(CANCEL_MS_MAX))
  } catch (thrown) {
    const fields = { err: toMoleculeError(thrown), upstreamTaskId: upstream.taskId }
    context.log.warn(fields, 'a cancelled task could not be cancelled at the remote agent')
  }
}

function stopIfAborted(signal: AbortSignal): void {
  if (signal.aborted) throw turnCanceled(signal.reason)
}
