/**
 * The `openai` backend: any endpoint that speaks OpenAI's chat completions, streamed. It has no memory of its own, so
 * each turn carries the conversation as it is stored here. Invariant: a reply is whole or it is an error; half a stream
 * is never an answer. The URL is the admin's own word and may be private.
 */
import { createOutbound, type Outbound } from '../../client/outbound.ts'
import { MoleculeError, toMoleculeError } from '../../errors.ts'
import type { Backend, BackendContext, BackendDefinition, BackendEvent, Turn, Validation } from '../backend.ts'
import { ENDPOINT_OPTIONS } from '../endpoint.ts'
import { turnCanceled } from '../engine/turn-engine.ts'
import { type ChatMessage, chatMessages, withoutOldestHalf } from './chat-messages.ts'
import { failureOfStatus, isContextFull } from './outcome.ts'
import { parseAnswer } from './parse.ts'
import { type OpenaiSettings, readOpenaiSettings } from './settings.ts'

/** Of the answer on the wire: many small events, each with as much around it as ten times its text. */
const STREAM_BYTES_MAX = 512 * 1024 * 1024
const ERROR_BYTES_MAX = 64 * 1024
const VALIDATE_MS_MAX = 8000

export const openai: BackendDefinition = {
  name: 'openai',
  summary: 'any OpenAI-compatible chat completions endpoint, with the history of the conversation',
  options: {
    url: "the API's base URL, e.g. http://127.0.0.1:11434/v1 (https://api.openai.com/v1)",
    base_url: 'another name for url',
    model: 'which model to ask; the workspace\'s own "model" is the same setting',
    params: 'more fields of each request, as a JSON object, e.g. {"temperature": 0}; null takes one away',
    ...ENDPOINT_OPTIONS,
  },
  startsNothing: true,
  reportsTools: true,
  usesHistory: true,
  create: (options, context) => createOpenai(readOpenaiSettings(options, context.environment), context),
}

function createOpenai(settings: OpenaiSettings, { log }: BackendContext): Backend {
  const outbound = createOutbound()
  const closing = new AbortController()
  return {
    name: openai.name,
    stallMs: settings.stallMs,
    validate: (signal) => validate(settings, outbound, signal),
    run(turn, signal) {
      const warn = (words: string) => log.warn({ workspace: turn.request.workspace_id }, words)
      return runTurn(turn, { settings, outbound, warn }, AbortSignal.any([signal, closing.signal]))
    },
    close() {
      closing.abort()
      return Promise.resolve()
    },
  }
}

/** Asks for the list of models: it costs nothing, and says whether the URL and the login are right. */
async function validate(settings: OpenaiSettings, outbound: Outbound, signal: AbortSignal): Promise<Validation> {
  try {
    const url = `${settings.url}/models`
    const headers = await settings.headers()
    const answer = await outbound.send({ url, headers, trusted: true, totalMs: VALIDATE_MS_MAX }, signal)
    answer.discard()
    if (answer.status === 401 || answer.status === 403) {
      return { ok: false, problem: `${url} refuses the login (HTTP ${answer.status}).`, remedy: LOGIN_REMEDY }
    }
    // Some endpoints have no list: that they answer at all is what can be known without paying for a question.
    return { ok: true, ...(answer.status === 200 ? {} : { note: `${url} answered HTTP ${answer.status}` }) }
  } catch (error) {
    return { ok: false, problem: `${(error as Error).message}.`, remedy: 'Check the url and its credentials.' }
  }
}

const LOGIN_REMEDY = 'Name a working key with token_file or token_env.'

interface OpenaiContext {
  readonly settings: OpenaiSettings
  readonly outbound: Outbound
  readonly warn: (words: string) => void
}

async function* runTurn(turn: Turn, context: OpenaiContext, signal: AbortSignal): AsyncGenerator<BackendEvent> {
  try {
    const model = turn.model ?? context.settings.model
    if (model === undefined) throw new MoleculeError('bad_config', 'no model is set: set "model" of the workspace')
    let messages = chatMessages(turn)
    for (;;) {
      signal.throwIfAborted()
      const asked = await requestCompletion({ ...context, model, messages }, signal)
      if (!(asked instanceof MoleculeError)) return yield* parseAnswer(asked, context.warn)
      const shorter = isContextFull(asked) ? withoutOldestHalf(messages) : undefined
      if (shorter === undefined) throw asked
      messages = shorter
      yield { type: 'status', text: 'the conversation is too long for the model: its oldest half is left out' }
    }
  } catch (thrown) {
    yield { type: 'failed', error: signal.aborted ? turnCanceled(thrown) : toMoleculeError(thrown) }
  }
}

interface CompletionRequest extends OpenaiContext {
  readonly model: string
  readonly messages: readonly ChatMessage[]
}

/** The answer to be read, or the error that stands in its place. */
async function requestCompletion({ settings, outbound, model, messages }: CompletionRequest, signal: AbortSignal) {
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
      // Some models think for minutes before the first byte; how long that may be is the stall clock's to say.
      headersMs: settings.stallMs,
      bytesMax: STREAM_BYTES_MAX,
    },
    signal,
  )
  if (answer.status >= 200 && answer.status < 300) return answer
  return failureOfStatus(answer.status, answer.headers, await readErrorBody(answer.chunks()))
}

function requestBody({ params }: OpenaiSettings, model: string, messages: readonly ChatMessage[]): object {
  const body = { stream_options: { include_usage: true }, ...params, model, messages, stream: true }
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null))
}

/** As much of an error's words as anybody will read. */
async function readErrorBody(chunks: AsyncIterable<Buffer>): Promise<string> {
  const kept: Buffer[] = []
  let bytes = 0
  for await (const chunk of chunks) {
    kept.push(chunk)
    bytes += chunk.length
    if (bytes >= ERROR_BYTES_MAX) break
  }
  return Buffer.concat(kept).subarray(0, ERROR_BYTES_MAX).toString('utf8')
}
