/**
 * Parses an answer of OpenAI's chat completions, streamed or whole, into events. Invariant: `done` comes only after the endpoint
 * said that it has finished; a stream that just stops is an error, however much has come.
 */
import type { OutboundResponse } from '../../client/dial.ts'
import { readSse } from '../../client/read-sse.ts'
import { MoleculeError } from '../../errors.ts'
import { isJsonObject, type JsonObject, parseJsonObject } from '../../protocol/json.ts'
import type { BackendEvent } from '../backend.ts'
import { agentReason } from './failure/agent-errors.ts'
import { OUTPUT_BYTES_MAX } from './turn-engine.ts'

interface AnswerState {
  text: string
  bytes: number
  finish: string | undefined
  refused: string
}

/** Bytes of one answer on the wire; a larger one fails the turn. Each event is about ten times as large as its text. */
export const STREAM_BYTES_MAX = 512 * 1024 * 1024
/** Bytes of an error that are read; the rest is dropped. */
const ERROR_BYTES_MAX = 64 * 1024

export interface ChatCompletionReader {
  readonly warn: (message: string) => void
  /** The error for an `error` in the middle of the stream, which has no status. */
  readonly failureInStream: (error: JsonObject) => MoleculeError
}

/** The events of a successful answer. Throws MoleculeError. */
export async function* readChatCompletion(
  answer: OutboundResponse,
  { warn, failureInStream }: ChatCompletionReader,
): AsyncGenerator<BackendEvent> {
  const state: AnswerState = { text: '', bytes: 0, finish: undefined, refused: '' }
  for await (const chunk of chunksOf(answer)) {
    if (isJsonObject(chunk['error'])) throw failureInStream(chunk['error'])
    yield* readChunk(chunk, state)
  }
  if (state.finish === undefined) {
    throw new MoleculeError('no_end', 'the stream was cut before the answer was whole', { retryable: true })
  }
  if (state.finish === 'length') {
    const text = 'the answer was cut off at the limit of tokens'
    warn(text)
    yield { type: 'status', text }
  }
  yield endOf(state)
}

function endOf({ text, refused, finish }: AnswerState): BackendEvent {
  if (text !== '') return { type: 'done', parts: [{ text }], finality: 'completed' }
  if (refused !== '') return { type: 'done', parts: [{ text: refused }], finality: 'rejected' }
  if (finish === 'content_filter') {
    return failed(agentReason("the provider's content filter withheld the answer"))
  }
  return failed(new MoleculeError('empty_response', 'the model ended without an answer', { retryable: true }))
}

const failed = (error: MoleculeError): BackendEvent => ({ type: 'failed', error })

/** The events of a stream. An endpoint that does not stream gives one event with the same members. */
async function* chunksOf(answer: OutboundResponse): AsyncGenerator<JsonObject> {
  if (!/event-stream/.test(answer.headers['content-type'] ?? '')) {
    return yield parseChunk(await answer.text())
  }
  for await (const data of readSse(answer.chunks())) {
    if (data === '[DONE]') return
    yield parseChunk(data)
  }
}

function parseChunk(text: string): JsonObject {
  const value = parseJsonObject(text)
  if (value !== undefined) return value
  // Without the parser's error as the cause: it quotes a piece of the model's answer.
  throw new MoleculeError('unreadable_output', 'the endpoint sent something that is not a chat completion', {
    retryable: true,
  })
}

function* readChunk(chunk: JsonObject, state: AnswerState): Generator<BackendEvent> {
  const choice = firstChoice(chunk)
  const message = choice?.['delta'] ?? choice?.['message']
  const delta = isJsonObject(message) && typeof message['content'] === 'string' ? message['content'] : ''
  if (isJsonObject(message) && typeof message['refusal'] === 'string') state.refused += message['refusal']
  if (typeof choice?.['finish_reason'] === 'string') state.finish = choice['finish_reason']
  if (delta === '') yield { type: 'activity' }
  else {
    state.bytes += Buffer.byteLength(delta)
    if (state.bytes > OUTPUT_BYTES_MAX) throw tooLarge()
    state.text += delta
    yield { type: 'text', delta }
  }
  if (isJsonObject(chunk['usage'])) yield { type: 'usage', ...tokensOf(chunk['usage']) }
}

function firstChoice(chunk: JsonObject): JsonObject | undefined {
  const choices = chunk['choices']
  const first: unknown = Array.isArray(choices) ? choices[0] : undefined
  return isJsonObject(first) ? first : undefined
}

function tokensOf(usage: JsonObject): { inputTokens?: number; outputTokens?: number } {
  const { prompt_tokens: input, completion_tokens: output } = usage
  return {
    ...(typeof input === 'number' && { inputTokens: input }),
    ...(typeof output === 'number' && { outputTokens: output }),
  }
}

function tooLarge(): MoleculeError {
  const message = `the answer is larger than ${OUTPUT_BYTES_MAX} bytes`
  return new MoleculeError('too_large', message, { details: { limitBytes: OUTPUT_BYTES_MAX } })
}

/** The body of a refusal, cut at ERROR_BYTES_MAX. */
export async function readErrorBody(answer: OutboundResponse): Promise<string> {
  const kept: Buffer[] = []
  let bytes = 0
  for await (const chunk of answer.chunks()) {
    kept.push(chunk)
    bytes += chunk.length
    if (bytes >= ERROR_BYTES_MAX) break
  }
  return Buffer.concat(kept).subarray(0, ERROR_BYTES_MAX).toString('utf8')
}
