/**
 * Makes a fake model fail as real providers do: a proxy before it that answers a message with the phrase of a failure by
 * the provider's own status and body, in the wire format of the request. Every other request passes unchanged.
 */
import { type ModelProxy, type ProxyCall, passOn, startModelProxy } from './model-proxy.ts'

/** The failures that a provider itself reports; each is chosen by `failurePrompt`. */
export const PROVIDER_FAILURES = [
  'rate limit',
  'overloaded',
  'server error',
  'quota used up',
  'wrong key',
  'bad request',
  'unknown model',
  'network away',
  'refusal',
  'context too long',
] as const
export type ProviderFailure = (typeof PROVIDER_FAILURES)[number]

/** The message that meets the failure. */
export const failurePrompt = (failure: ProviderFailure): string => `Please fail: ${failure}.`

export function startFailingProvider(target: string): Promise<ModelProxy> {
  return startModelProxy((call) => answer(target, call))
}

async function answer(target: string, call: ProxyCall): Promise<void> {
  const { request, body, response } = call
  const failure = lastFailureIn(body)
  if (failure === undefined) return passOn(target, call)
  if (failure === 'network away') return void request.socket.destroy()
  const { status, json, events } = ANSWERS[wireOf(request.url ?? '')][failure]
  const type = events === undefined ? 'application/json' : 'text/event-stream'
  // Only a rate limit ends by itself.
  const waits = failure === 'rate limit' && { 'retry-after': '1' }
  response.writeHead(status, { 'content-type': type, ...waits })
  response.end(events ?? JSON.stringify(json))
}

/** The last one: a conversation may have met another failure before. */
function lastFailureIn(body: string): ProviderFailure | undefined {
  const found = [...body.matchAll(/Please fail: ([a-z ]+)\./g)].at(-1)?.[1]
  return PROVIDER_FAILURES.find((failure) => failure === found)
}

type Wire = 'anthropic' | 'chat' | 'responses' | 'google'

function wireOf(path: string): Wire {
  if (path.includes('/messages')) return 'anthropic'
  if (path.includes('/responses')) return 'responses'
  return path.includes('enerateContent') ? 'google' : 'chat'
}

interface ProviderAnswer {
  readonly status: number
  readonly json?: unknown
  /** The text of an event stream instead of a JSON body. */
  readonly events?: string
}

type Answers = Readonly<Record<Exclude<ProviderFailure, 'network away'>, ProviderAnswer>>

const stream = (events: readonly unknown[]): string =>
  events.map((event) => `event: ${eventType(event)}\ndata: ${JSON.stringify(event)}\n\n`).join('')
const eventType = (event: unknown): string => (event as { type?: string }).type ?? 'message'

const REFUSAL_TEXT = 'I cannot help with that.'

const anthropic = (status: number, type: string, message: string): ProviderAnswer => ({
  status,
  json: { type: 'error', error: { type, message }, request_id: 'req_011CSHoEeqs5C35K2UUqR7Fy' },
})

const ANTHROPIC: Answers = {
  'rate limit': anthropic(
    429,
    'rate_limit_error',
    "This request would exceed your organization's rate limit of 50 requests per minute.",
  ),
  overloaded: anthropic(529, 'overloaded_error', 'Overloaded'),
  'server error': anthropic(500, 'api_error', 'Internal server error'),
  'quota used up': anthropic(
    400,
    'invalid_request_error',
    'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.',
  ),
  'wrong key': anthropic(401, 'authentication_error', 'invalid x-api-key'),
  'bad request': anthropic(400, 'invalid_request_error', 'messages.0.content: Input should be a valid list'),
  'unknown model': anthropic(404, 'not_found_error', 'model: claude-nope'),
  'context too long': anthropic(400, 'invalid_request_error', 'prompt is too long: 215512 tokens > 200000 maximum'),
  refusal: {
    status: 200,
    events: stream([
      {
        type: 'message_start',
        message: {
          id: 'msg_01',
          type: 'message',
          role: 'assistant',
          model: 'claude-sonnet-4-5',
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { input_tokens: 11, output_tokens: 1 },
        },
      },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: REFUSAL_TEXT } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'refusal', stop_sequence: null }, usage: { output_tokens: 7 } },
      { type: 'message_stop' },
    ]),
  },
}

const openai = (status: number, message: string, [type, code]: readonly [string, string | null]): ProviderAnswer => ({
  status,
  json: { error: { message, type, param: null, code } },
})

const CHAT: Answers = {
  'rate limit': openai(
    429,
    'Rate limit reached for any in organization org-1 on requests per min (RPM): Limit 3, Used 3, Requested 1. Visit https://platform.openai.com/account/rate-limits to learn more.',
    ['requests', 'rate_limit_exceeded'],
  ),
  overloaded: openai(529, 'Overloaded', ['overloaded_error', null]),
  'server error': openai(500, 'The server had an error while processing your request. Sorry about that!', [
    'server_error',
    null,
  ]),
  'quota used up': openai(
    429,
    'You exceeded your current quota, please check your plan and billing details. For more information on this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.',
    ['insufficient_quota', 'insufficient_quota'],
  ),
  'wrong key': openai(
    401,
    'Incorrect API key provided: sk-not-t**-key. You can find your API key at https://platform.openai.com/account/api-keys.',
    ['invalid_request_error', 'invalid_api_key'],
  ),
  'bad request': openai(
    400,
    "Invalid value: 'tool'. Supported values are: 'system', 'assistant', 'user', 'function', and 'developer'.",
    ['invalid_request_error', 'invalid_value'],
  ),
  'unknown model': openai(404, 'The model `nope` does not exist or you do not have access to it.', [
    'invalid_request_error',
    'model_not_found',
  ]),
  'context too long': openai(
    400,
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 130512 tokens. Please reduce the length of the messages.",
    ['invalid_request_error', 'context_length_exceeded'],
  ),
  refusal: {
    status: 200,
    events: [
      { delta: { role: 'assistant', content: REFUSAL_TEXT }, finish_reason: null },
      { delta: {}, finish_reason: 'content_filter' },
    ]
      .map(
        (choice) =>
          `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'any', choices: [{ index: 0, ...choice }] })}\n\n`,
      )
      .concat('data: [DONE]\n\n')
      .join(''),
  },
}

const responseFailed = (code: string, message: string): ProviderAnswer => ({
  status: 200,
  events: stream([
    { type: 'response.created', response: { id: 'resp_1', status: 'in_progress' } },
    { type: 'response.failed', response: { id: 'resp_1', status: 'failed', error: { code, message } } },
  ]),
})

const RESPONSES: Answers = {
  ...CHAT,
  overloaded: openai(
    503,
    'The server is currently overloaded with other requests. Sorry about that! You can retry your request.',
    ['service_unavailable_error', 'server_is_overloaded'],
  ),
  'unknown model': openai(400, "The requested model 'nope' does not exist.", [
    'invalid_request_error',
    'model_not_found',
  ]),
  'context too long': responseFailed(
    'context_length_exceeded',
    'Your input exceeds the context window of this model. Please adjust your input and try again.',
  ),
  refusal: responseFailed(
    'invalid_prompt',
    'Invalid prompt: your prompt was flagged as potentially violating our usage policy. Please try again with a different prompt: https://platform.openai.com/docs/guides/reasoning#advice-on-prompting',
  ),
}

const google = (code: number, status: string, error: { message: string; details?: readonly unknown[] }) => ({
  status: code,
  json: { error: { code, status, ...error } },
})

const quotaDetails = (period: 'Minute' | 'Day') => [
  {
    '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
    violations: [
      {
        quotaMetric: 'generativelanguage.googleapis.com/generate_content_free_tier_requests',
        quotaId: `GenerateRequestsPer${period}PerProjectPerModel-FreeTier`,
        quotaDimensions: { location: 'global', model: 'gemini-2.5-pro' },
        quotaValue: '5',
      },
    ],
  },
  { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '1s' },
]
const QUOTA_TEXT =
  'You exceeded your current quota, please check your plan and billing details. For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.'

const GOOGLE: Answers = {
  'rate limit': google(429, 'RESOURCE_EXHAUSTED', { message: QUOTA_TEXT, details: quotaDetails('Minute') }),
  overloaded: google(503, 'UNAVAILABLE', { message: 'The model is overloaded. Please try again later.' }),
  'server error': google(500, 'INTERNAL', {
    message:
      'An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting',
  }),
  'quota used up': google(429, 'RESOURCE_EXHAUSTED', { message: QUOTA_TEXT, details: quotaDetails('Day') }),
  'wrong key': google(400, 'INVALID_ARGUMENT', {
    message: 'API key not valid. Please pass a valid API key.',
    details: [
      { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID', domain: 'googleapis.com' },
    ],
  }),
  'bad request': google(400, 'INVALID_ARGUMENT', { message: 'Request contains an invalid argument.' }),
  'unknown model': google(404, 'NOT_FOUND', {
    message:
      'models/nope is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods.',
  }),
  'context too long': google(400, 'INVALID_ARGUMENT', {
    message: 'The input token count (1205512) exceeds the maximum number of tokens allowed (1048576).',
  }),
  refusal: {
    status: 200,
    events: `data: ${JSON.stringify({
      candidates: [{ content: { role: 'model', parts: [{ text: '' }] }, finishReason: 'SAFETY', index: 0 }],
      usageMetadata: { promptTokenCount: 11, totalTokenCount: 11 },
      modelVersion: 'gemini-2.5-pro',
    })}\n\n`,
  },
}

const ANSWERS: Readonly<Record<Wire, Answers>> = {
  anthropic: ANTHROPIC,
  chat: CHAT,
  responses: RESPONSES,
  google: GOOGLE,
}
