/**
 * The `openai` backend: any endpoint that speaks OpenAI's chat completions, streamed. The endpoint has no memory, so each
 * turn sends the stored history. Invariant: a reply is complete or an error; half a stream is never an answer. The admin
 * gave the URL, so it may be private.
 */
import { createOutbound, type Outbound } from '../../client/outbound.ts'
import type { Clock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import type { Backend, BackendContext, BackendDefinition, BackendEvent, Turn, Validation } from '../backend.ts'
import { ENDPOINT_OPTIONS, endpointError } from '../endpoint.ts'
import { readChatCompletion, readErrorBody, STREAM_BYTES_MAX } from '../engine/chat-completion.ts'
import { turnCanceled } from '../engine/turn-engine.ts'
import { type ChatMessage, chatMessages, withoutOldestHalf } from './chat-messages.ts'
import { failureInStream, failureOfStatus, isContextFull } from './outcome.ts'
import { type OpenaiSettings, readOpenaiSettings } from './settings.ts'

const VALIDATE_MS_MAX = 8000

export const openai: BackendDefinition = {
  name: 'openai',
  summary: 'any OpenAI-compatible chat completions endpoint, with the history of the conversation',
  options: {
    url: "the API's base URL, e.g. http://127.0.0.1:11434/v1 (https://api.openai.com/v1)",
    base_url: 'another name for url',
    model: 'the model; the same setting as "model" of the workspace',
    params: 'more fields of each request, as a JSON object, e.g. {"temperature": 0}; null removes a field',
    ...ENDPOINT_OPTIONS,
  },
  startsNothing: true,
  reportsTools: true,
  usesHistory: true,
  create: (options, context) => createOpenai(readOpenaiSettings(options, context.environment), context),
}

function createOpenai(settings: OpenaiSettings, { log, clock }: BackendContext): Backend {
  const outbound = createOutbound()
  const closing = new AbortController()
  return {
    name: openai.name,
    stallMs: settings.stallMs,
    validate: (signal) => validate(settings, outbound, signal),
    run(turn, signal) {
      const warn = (message: string) => log.warn({ workspace: turn.request.workspace_id }, message)
      return runTurn(turn, { settings, outbound, clock, warn }, AbortSignal.any([signal, closing.signal]))
    },
    close() {
      closing.abort()
      return Promise.resolve()
    },
  }
}

/** Gets the list of models: it costs nothing and shows whether the URL and the login are right. */
async function validate(settings: OpenaiSettings, outbound: Outbound, signal: AbortSignal): Promise<Validation> {
  try {
    const url = `${settings.url}/models`
    const headers = await settings.headers()
    const answer = await outbound.send({ url, headers, trusted: true, totalMs: VALIDATE_MS_MAX }, signal)
    answer.discard()
    if (answer.status === 401 || answer.status === 403) {
      return { ok: false, problem: `${url} refuses the login (HTTP ${answer.status}).`, remedy: LOGIN_REMEDY }
    }
    // Some endpoints have no list of models. More cannot be known without a paid request.
    return { ok: true, ...(answer.status === 200 ? {} : { note: `${url} answered HTTP ${answer.status}` }) }
  } catch (error) {
    return { ok: false, problem: (error as Error).message, remedy: 'check the url and its credentials' }
  }
}

const LOGIN_REMEDY = 'Set token_file or token_env to a working key.'

interface OpenaiContext {
  readonly settings: OpenaiSettings
  readonly outbound: Outbound
  readonly clock: Clock
  readonly warn: (message: string) => void
}

async function* runTurn(turn: Turn, context: OpenaiContext, signal: AbortSignal): AsyncGenerator<BackendEvent> {
  try {
    const model = turn.model ?? context.settings.model
    if (model === undefined) throw new MoleculeError('bad_config', 'no model is set: set "model" of the workspace')
    let messages = chatMessages(turn)
    for (;;) {
      signal.throwIfAborted()
      const answer = await requestCompletion({ ...context, model, messages }, signal)
      if (!(answer instanceof MoleculeError))
        return yield* readChatCompletion(answer, { warn: context.warn, failureInStream })
      const shorter = isContextFull(answer) ? withoutOldestHalf(messages) : undefined
      if (shorter === undefined) throw answer
      messages = shorter
      yield { type: 'status', text: 'the conversation is too long for the model: its oldest half is left out' }
    }
  } catch (thrown) {
    yield { type: 'failed', error: signal.aborted ? turnCanceled(thrown) : endpointError(thrown) }
  }
}

interface CompletionRequest extends OpenaiContext {
  readonly model: string
  readonly messages: readonly ChatMessage[]
}

/** The answer to read, or the error that the endpoint answered. */
async function requestCompletion(
  { settings, outbound, clock, model, messages }: CompletionRequest,
  signal: AbortSignal,
) {
  const answer = await outbound.send(
    {
      url: `${settings.url}/chat/completions`,
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Accept: 'text/event-stream, application/json',
        ...(await settings.headers()),
      },
      body: JSON.stringify(requestBody(settings, model, messages)),
      trusted: true,
      // Some models think for minutes before the first byte, so only the stall timeout limits the wait.
      headersMs: settings.stallMs,
      bytesMax: STREAM_BYTES_MAX,
    },
    signal,
  )
  if (answer.status >= 200 && answer.status < 300) return answer
  return failureOfStatus(answer, await readErrorBody(answer), clock.nowMs())
}

function requestBody({ params }: OpenaiSettings, model: string, messages: readonly ChatMessage[]): object {
  const body = { stream_options: { include_usage: true }, ...params, model, messages, stream: true }
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null))
}
