/**
 * A fake OpenAI-compatible endpoint: a real server on loopback whose base URL chooses the behaviour (`/as/echo/v1`,
 * `/as/429/v1`). It streams and fails in the ways that real endpoints do.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'

export interface ChatCall {
  readonly headers: IncomingMessage['headers']
  readonly body: {
    readonly model: string
    readonly messages: readonly { readonly role: string; readonly content: unknown }[]
    readonly [field: string]: unknown
  }
}

export interface ChatEndpoint {
  /** The base URL with that behaviour. */
  urlFor(behaviour: string): string
  readonly calls: ChatCall[]
  stop(): void
}

export async function startChatEndpoint(): Promise<ChatEndpoint> {
  const calls: ChatCall[] = []
  const server: Server = createServer((request, response) => {
    const behaviour = /^\/as\/([^/]+)\//.exec(request.url ?? '')?.[1] ?? 'echo'
    if (request.method === 'GET') return listModels(behaviour, response)
    json(request).then(
      (body) => {
        const call = { headers: request.headers, body: body as ChatCall['body'] }
        calls.push(call)
        ;(BEHAVIOURS[behaviour] ?? echo)(response, call)
      },
      () => response.destroy(),
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    urlFor: (behaviour) => `http://127.0.0.1:${port}/as/${behaviour}/v1`,
    calls,
    stop() {
      server.closeAllConnections()
      server.close()
    },
  }
}

type Behaviour = (response: ServerResponse, call: ChatCall) => void

function listModels(behaviour: string, response: ServerResponse): void {
  if (behaviour === '401') refuse(response, 401, { message: 'Incorrect API key' })
  else if (behaviour === '404') refuse(response, 404, { message: 'no such page' })
  else response.end(JSON.stringify({ object: 'list', data: [{ id: 'fake' }] }))
}

const textOf = ({ body }: ChatCall): string => String(body.messages.at(-1)?.content ?? '')

const echo: Behaviour = (response, call) => {
  begin(response)
  for (const piece of pieces(textOf(call))) sendChunk(response, { delta: { content: piece } })
  finish(response, 'stop')
}

const BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
  endless(response) {
    begin(response)
    sendChunk(response, { delta: { content: 'and so on' } })
  },
  silent: () => undefined,
  cut(response) {
    begin(response)
    sendChunk(response, { delta: { content: 'half an ans' } })
    // Closes the connection properly: only the missing end of the stream shows that the answer is incomplete.
    response.end()
  },
  torn(response) {
    begin(response)
    sendChunk(response, { delta: { content: 'half an ans' } })
    setTimeout(() => response.destroy(), 20)
  },
  flood(response) {
    begin(response)
    const content = 'x'.repeat(64 * 1024)
    for (let n = 0; n < 200; n++) sendChunk(response, { delta: { content } })
    finish(response, 'stop')
  },
  length(response) {
    begin(response)
    sendChunk(response, { delta: { content: 'as far as' } })
    finish(response, 'length')
  },
  filter(response) {
    begin(response)
    finish(response, 'content_filter')
  },
  refusal(response) {
    begin(response)
    sendChunk(response, { delta: { refusal: 'I would rather not.' } })
    finish(response, 'stop')
  },
  thinking(response) {
    begin(response)
    sendChunk(response, { delta: { reasoning_content: 'hm' } })
    sendChunk(response, { delta: { role: 'assistant', content: null } })
    sendChunk(response, { delta: { content: 'yes' } })
    finish(response, 'stop')
  },
  garbage(response) {
    begin(response)
    response.end('data: {"choices": [\n\n')
  },
  whole(response, call) {
    response.setHeader('Content-Type', 'application/json')
    const choices = [{ message: { role: 'assistant', content: textOf(call) }, finish_reason: 'stop' }]
    response.end(JSON.stringify({ choices, usage: { prompt_tokens: 7, completion_tokens: 3 } }))
  },
  midstream(response) {
    begin(response)
    sendChunk(response, { delta: { content: 'well, ' } })
    response.end(`data: ${JSON.stringify({ error: { code: 'rate_limit_exceeded', message: 'slow down' } })}\n\n`)
  },
  /** Accepts three messages besides the system prompt. */
  small(response, call) {
    const messages = call.body.messages.filter(({ role }) => role !== 'system')
    if (messages.length <= 3) return echo(response, call)
    refuse(response, 400, { code: 'context_length_exceeded', message: 'maximum context length is 3 messages' })
  },
  tiny: (response) => refuse(response, 400, { code: 'context_length_exceeded', message: 'too long' }),
  '400': (response) => refuse(response, 400, { message: 'temperature must be a number' }),
  '401': (response) => refuse(response, 401, { code: 'invalid_api_key', message: 'Incorrect API key provided' }),
  '404': (response) => refuse(response, 404, { code: 'model_not_found', message: 'no such model' }),
  '429': (response) => refuse(response, 429, { code: 'rate_limit_exceeded', message: 'slow down', retryAfter: '7' }),
  quota: (response) => refuse(response, 429, { code: 'insufficient_quota', message: 'pay first' }),
  '503': (response) => {
    response.writeHead(503, { 'Content-Type': 'text/html' })
    response.end('<html>Service Unavailable</html>')
  },
}

function begin(response: ServerResponse): void {
  response.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8' })
  // Some endpoints send comments to keep the connection alive.
  response.write(': hello\n\n')
}

function sendChunk(response: ServerResponse, choice: object): void {
  response.write(`data: ${JSON.stringify({ object: 'chat.completion.chunk', choices: [{ index: 0, ...choice }] })}\n\n`)
}

function finish(response: ServerResponse, reason: string): void {
  sendChunk(response, { delta: {}, finish_reason: reason })
  response.write(`data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 11, completion_tokens: 5 } })}\n\n`)
  response.end('data: [DONE]\n\n')
}

function refuse(
  response: ServerResponse,
  status: number,
  { retryAfter, ...error }: { code?: string; message: string; retryAfter?: string },
): void {
  if (retryAfter !== undefined) response.setHeader('Retry-After', retryAfter)
  response.writeHead(status, { 'Content-Type': 'application/json' })
  response.end(JSON.stringify({ error }))
}

/** Splits between characters, into at most 64 pieces. */
function pieces(text: string): string[] {
  const characters = [...text]
  const length = Math.max(3, Math.ceil(characters.length / 64))
  const count = Math.ceil(characters.length / length)
  return Array.from({ length: count }, (_, n) => characters.slice(n * length, (n + 1) * length).join(''))
}
