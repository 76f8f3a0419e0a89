/**
 * The `a2a` backend: relays messages to a remote agent, found by its card, in A2A 1.0 or 0.3. All its events are passed
 * on. Invariant: once the remote agent has named its task, the message is never sent again; a later attempt asks for
 * that task. The admin gave the URL, so it may be private.
 */
import { type A2aClient, createA2aClient } from '../../client/a2a-client.ts'
import { createOutbound } from '../../client/outbound.ts'
import { MoleculeError, toMoleculeError } from '../../errors.ts'
import type { StreamResponse } from '../../protocol/a2a.ts'
import { traceFromVariables } from '../../protocol/trace-context.ts'
import { onAbort, sleep } from '../../wait.ts'
import type { Backend, BackendContext, BackendDefinition, BackendEvent, Turn, Validation } from '../backend.ts'
import { ENDPOINT_OPTIONS, type Endpoint, endpointError, readEndpoint } from '../endpoint.ts'
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
/** Of a cancelled turn: how long to wait for the name of the remote task, and for the answer to its cancel. */
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
  ignoresPrompt: true,
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
    return { ok: true, version: `A2A ${version}`, ...(name !== '' && { note: `the name of the agent is ${name}` }) }
  } catch (error) {
    return { ok: false, problem: (error as Error).message, remedy: 'check the url and its credentials' }
  }
}

interface RelayContext {
  readonly client: A2aClient
  readonly context: BackendContext
}

async function* relay(turn: Turn, relayContext: RelayContext, signal: AbortSignal): AsyncIterable<BackendEvent> {
  const noted = readUpstreamNote(turn)
  const parser = createUpstreamParser(noted ?? {})
  try {
    stopIfAborted(signal)
    if (noted === undefined) yield* sendAndStream(turn, { ...relayContext, parser }, signal)
    if (parser.end === undefined) yield* followTask({ ...relayContext, parser }, signal)
    const { upstream } = parser
    const waiting = parser.end?.type === 'done' && WAITING_FINALITIES.has(parser.end.finality)
    yield { type: 'session', token: writeSession(upstream, turn.request.task_id, waiting) }
    if (parser.end !== undefined) yield parser.end
  } catch (thrown) {
    if (signal.reason === 'canceled') await cancelUpstream(parser, relayContext)
    yield { type: 'failed', error: signal.aborted ? turnCanceled(thrown) : endpointError(thrown, { remote: true }) }
  }
}

const WAITING_FINALITIES: ReadonlySet<string> = new Set(['input_required', 'auth_required'])

interface RelayTurnContext extends RelayContext {
  readonly parser: UpstreamParser
}

/** Sends the message and reads the answer until the connection ends. Notes the remote task as soon as it has a name. */
async function* sendAndStream(
  turn: Turn,
  relayTurn: RelayTurnContext,
  signal: AbortSignal,
): AsyncIterable<BackendEvent> {
  const { client, parser } = relayTurn
  const message = outgoingMessage(turn)
  const { streaming } = await client.interface(signal)
  yield { type: 'note', key: SENDING_NOTE, value: message.messageId }
  stopIfAborted(signal)
  let noted: string | undefined
  const sending = sendSignal(signal, () => noted !== undefined)
  const outgoing = { message, trace: traceFromVariables(turn.env) }
  const answers = streaming ? client.stream(outgoing, sending.signal) : once(client.send(outgoing, sending.signal))
  try {
    for await (const event of answers) {
      const events = parser.read(event)
      const { upstream } = parser
      if (upstream.taskId !== noted && event.message === undefined) {
        noted = upstream.taskId
        yield { type: 'note', key: UPSTREAM_NOTE, value: writeUpstreamNote(upstream) }
        yield { type: 'session', token: writeSession(upstream, turn.request.task_id, false) }
        stopIfAborted(signal)
      }
      yield* events
      if (parser.isOver) return
    }
  } catch (thrown) {
    const error = toMoleculeError(thrown)
    if (message.taskId !== undefined && noted === undefined && TASK_GONE_CODES.has(error.code)) {
      throw new MoleculeError('session_lost', 'the remote agent no longer waits for this answer', { cause: error })
    }
    // A broken connection ends nothing: the remote task continues, and its name is known.
    if (noted === undefined || error.code !== 'timeout') throw error
  } finally {
    sending.release()
  }
}

/**
 * The signal for a send. A task without a name cannot be cancelled at the remote agent. So a cancel that comes before
 * the name waits CANCEL_MS_MAX for it; every other abort is passed on at once.
 */
export function sendSignal(signal: AbortSignal, isNamed: () => boolean): { signal: AbortSignal; release: () => void } {
  const stop = new AbortController()
  const end = () => stop.abort(signal.reason)
  let timer: NodeJS.Timeout | undefined
  const release = onAbort(signal, () => {
    if (signal.reason !== 'canceled' || isNamed()) return end()
    timer = setTimeout(end, CANCEL_MS_MAX).unref()
  })
  return {
    signal: stop.signal,
    release() {
      release()
      clearTimeout(timer)
    },
  }
}

const TASK_GONE_CODES: ReadonlySet<string> = new Set(['not_found', 'unsupported_operation'])

async function* once(answer: Promise<StreamResponse>): AsyncIterable<StreamResponse> {
  yield await answer
}

/** Gets the task, then reads its stream, and repeats until the task ends. Polls an agent without streams. */
async function* followTask(
  { client, context, parser }: RelayTurnContext,
  signal: AbortSignal,
): AsyncIterable<BackendEvent> {
  const { taskId } = parser.upstream
  if (taskId === undefined) throw new MoleculeError('no_end', 'the remote agent ended without an answer')
  let { streaming } = await client.interface(signal)
  for (;;) {
    yield* parser.read({ task: await client.get(taskId, signal) })
    if (parser.end !== undefined) return
    if (streaming) {
      try {
        for await (const event of client.subscribe(taskId, signal)) {
          yield* parser.read(event)
          if (parser.isOver) return
        }
      } catch (thrown) {
        const error = toMoleculeError(thrown)
        // The stream broke, the task ended before the subscription, or the agent has no streams. Getting the task tells.
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
