/**
 * The gateway of the fake openclaw: `/healthz` and the chat completions that it streamed in recorded runs. It owns the
 * state folder while it runs. The scenario `closed` has the endpoint off, as openclaw has by default.
 */
import { once } from 'node:events'
import { rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { inPieces, loadSession, print, readSample, saveSession, scenario } from './fake-agent.ts'

/** The only token that it accepts. */
const TOKEN = 'gateway-token'

/** Prints its port. Ends with SIGTERM. */
export async function runGateway(owner: string): Promise<void> {
  const server = createServer((request, response) => void answer(request, response))
  server.listen(Number(process.env['OPENCLAW_GATEWAY_PORT'] ?? 0), '127.0.0.1')
  await once(server, 'listening')
  writeFileSync(owner, `gateway ${process.pid}`)
  process.once('SIGTERM', () => {
    rmSync(owner, { force: true })
    process.exit(0)
  })
  print(`${(server.address() as AddressInfo).port}\n`)
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.url === '/healthz') return void response.end('{"ok":true}')
  if (request.url !== '/v1/chat/completions' || scenario === 'closed') return refuse(response, 404, 'Not Found')
  if (request.headers.authorization !== `Bearer ${TOKEN}`) return refuse(response, 401, 'Unauthorized')
  const body = (await json(request)) as { model: string; messages: { content: string }[] }
  const agent = /^openclaw\/(.+)$/.exec(body.model)?.[1] ?? ''
  if (agent !== 'main') return refuse(response, 400, `Unknown agent '${agent}'.`)
  const sessionId = /^agent:main:explicit:(.+)$/.exec(String(request.headers['x-openclaw-session-key']))?.[1] ?? ''
  const prompt = body.messages.at(-1)?.content ?? ''
  saveSession(sessionId, [...(loadSession(sessionId) ?? []), prompt])
  response.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8' })
  await play({ response, prompt, sessionId, model: String(request.headers['x-openclaw-model'] ?? '') })
}

interface GatewayTurn {
  readonly response: ServerResponse
  readonly prompt: string
  readonly sessionId: string
  readonly model: string
}

async function play({ response, prompt, sessionId, model }: GatewayTurn): Promise<void> {
  const [role, delta, ...rest] = readSample('openclaw/gateway-stream.sse').trim().split('\n\n')
  const say = (text: string) =>
    response.write(`${(delta ?? '').replace('"I know 1 2 3"', () => JSON.stringify(text))}\n\n`)
  response.write(`${role}\n\n`)
  switch (scenario) {
    case 'endless':
      return
    case 'flood':
      return flood(response, say)
    case 'cut':
      say('half an ans')
      return void response.end()
    case 'error-429':
      return void response.end(readSample('openclaw/gateway-stream-429.sse').split('\n\n').slice(1).join('\n\n'))
    case 'empty':
      break
    case 'count':
      say(`n=${loadSession(sessionId)?.length} by http${model && ` model=${model}`}`)
      break
    default:
      await inPieces(prompt, say)
  }
  response.end(`${rest.join('\n\n')}\n\n`)
}

async function flood(response: ServerResponse, say: (text: string) => boolean): Promise<void> {
  const closed = once(response, 'close')
  while (!response.closed) if (!say('x'.repeat(10_000))) await Promise.race([once(response, 'drain'), closed])
}

function refuse(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { 'Content-Type': 'application/json' })
  response.end(JSON.stringify({ error: { message, type: 'invalid_request_error' } }))
}
