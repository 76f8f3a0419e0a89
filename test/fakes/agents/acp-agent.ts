/**
 * An ACP agent made of the published SDK's agent side, with the dialect of the real ones where they differ: how each
 * says that the model failed, that it does not know a session, that it wants to be allowed something. Many sessions in
 * one process, kept on disk, so that a new process can load them.
 */
import { randomUUID } from 'node:crypto'
import { Readable, Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type AgentContext,
  agent,
  ndJsonStream,
  type PromptResponse,
  RequestError,
  type RequestPermissionRequest,
} from '@agentclientprotocol/sdk'
import {
  inPieces,
  loadSession,
  sampleLines,
  saveSession,
  scenario,
  startDetachedProcess,
  sweepSessions,
} from './fake-agent.ts'

export type AcpDialect = 'plain' | 'gemini' | 'opencode' | 'codex'

interface Session {
  readonly prompts: string[]
  cancel: AbortController
  readonly model: { current: string }
  /** The environments of the MCP servers that it was given. */
  readonly mcp: readonly unknown[]
}

interface Prompt {
  readonly sessionId: string
  readonly text: string
  readonly session: Session
  readonly client: AgentContext
}

const SAMPLES: Readonly<Record<AcpDialect, string>> = {
  plain: 'acp/claude-agent-acp.from-agent.jsonl',
  gemini: 'acp/gemini.from-agent.jsonl',
  opencode: 'acp/opencode.from-agent.jsonl',
  codex: 'acp/codex-acp.from-agent.jsonl',
}

const SLOW_MS = 400

export function acpAgent(dialect: AcpDialect): void {
  const sessions = new Map<string, Session>()
  const recorded = sampleLines(SAMPLES[dialect])
  const initialized = recorded.find((message) => message['id'] === 0 && 'result' in message)?.['result'] as object
  const open = (sessionId: string, prompts: string[], mcp: readonly unknown[] = []) =>
    sessions.set(sessionId, { prompts, cancel: new AbortController(), model: { current: 'default' }, mcp })
  agent({ name: `fake ${dialect}` })
    .onRequest('initialize', async () => {
      if (scenario === 'slow') await delay(SLOW_MS)
      if (dialect === 'gemini') sweepSessions()
      return Object.assign(structuredClone(initialized), overrides()) as never
    })
    .onRequest('session/new', async ({ params }) => {
      if (scenario === 'needs-login') throw RequestError.authRequired()
      const sessionId = dialect === 'opencode' ? `ses_${randomUUID().replaceAll('-', '')}` : randomUUID()
      open(sessionId, [], params.mcpServers)
      if (dialect === 'gemini') saveSession(sessionId, [])
      if (scenario === 'slow') await delay(SLOW_MS)
      return { sessionId, ...modelChoice() }
    })
    .onRequest('session/load', async ({ params, client }) => {
      const prompts = loadSession(params.sessionId)
      if (prompts === undefined || scenario === 'lost') throw unknownSession(dialect, params.sessionId)
      // What was said before is told again, and is no part of what comes. The real gemini answers before it tells it.
      const replay = async () => {
        for (const text of prompts) await say(client, params.sessionId, `before: ${text}`)
      }
      if (dialect === 'gemini') setTimeout(replay, 30)
      else await replay()
      open(params.sessionId, prompts)
      return { ...modelChoice() }
    })
    .onRequest('session/resume', ({ params }) => {
      const prompts = loadSession(params.sessionId)
      if (prompts === undefined || scenario === 'lost') throw unknownSession(dialect, params.sessionId)
      open(params.sessionId, prompts)
      return { ...modelChoice() }
    })
    .onRequest('session/set_config_option', ({ params }) => {
      const session = sessions.get(params.sessionId)
      const { value } = params as { value?: unknown }
      if (value !== 'default' && value !== 'fake/large') throw RequestError.invalidParams(`model not found: ${value}`)
      if (session) session.model.current = value
      return { configOptions: [] }
    })
    .onNotification('session/cancel', ({ params }) => sessions.get(params.sessionId)?.cancel.abort())
    .onRequest('session/prompt', async ({ params, client }) => {
      const session = sessions.get(params.sessionId)
      if (session === undefined) throw unknownSession(dialect, params.sessionId)
      session.cancel = new AbortController()
      const text = params.prompt.map((block) => (block.type === 'text' ? block.text : '')).join('')
      session.prompts.push(text)
      // What was swept away while it was open is not there again.
      if (dialect !== 'gemini' || loadSession(params.sessionId)) saveSession(params.sessionId, session.prompts)
      return await play({ sessionId: params.sessionId, text, session, client }, dialect)
    })
    .connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>))
}

function overrides(): object {
  if (scenario === 'acp-2') return { protocolVersion: 2 }
  return scenario === 'no-load' ? { agentCapabilities: { loadSession: false } } : {}
}

function modelChoice(): object {
  if (scenario !== 'models') return {}
  const options = [
    { value: 'default', name: 'Default' },
    { value: 'fake/large', name: 'Large' },
  ]
  return {
    configOptions: [
      { id: 'model', name: 'Model', category: 'model', type: 'select', currentValue: 'default', options },
    ],
  }
}

async function play(prompt: Prompt, dialect: AcpDialect): Promise<PromptResponse> {
  const { client, sessionId, text, session } = prompt
  switch (scenario) {
    case 'empty':
      return { stopReason: 'end_turn' }
    case 'endless':
      startDetachedProcess()
      return await untilCancelled(session)
    case 'deaf':
      // Does not stop when it is told to.
      startDetachedProcess()
      return await delay(300_000, { stopReason: 'end_turn' as const })
    case 'flood':
      return await floodOf(prompt)
    case 'dies':
      await say(client, sessionId, 'half an ans')
      return process.exit(7)
    case 'refusal':
    case 'max_turn_requests':
    case 'max_tokens':
      await say(client, sessionId, text)
      return { stopReason: scenario }
    case 'tool':
      return await askFirst(prompt, dialect)
    case 'mixed':
      return await mixed(prompt)
    case 'environment':
      await say(
        client,
        sessionId,
        JSON.stringify({ names: Object.keys(process.env), argv: process.argv.slice(2), mcp: session.mcp }),
      )
      return finished()
    case 'count':
      await say(client, sessionId, `n=${session.prompts.length}`)
      return finished()
    case 'models':
      await say(client, sessionId, session.model.current)
      return finished()
    case 'echo':
    case 'slow':
    case 'no-load':
    case 'lost':
      await pieces(prompt)
      return finished()
    default:
      return await failAs(dialect, prompt)
  }
}

/** What it does hangs on what it is told: waits for a cancel, takes its time, or answers at once. */
async function mixed(prompt: Prompt): Promise<PromptResponse> {
  if (prompt.text === 'wait') {
    startDetachedProcess()
    return await untilCancelled(prompt.session)
  }
  if (prompt.text.startsWith('slow')) await delay(1_000)
  await pieces(prompt)
  return finished()
}

async function floodOf({ client, sessionId }: Prompt): Promise<never> {
  for (;;) await say(client, sessionId, 'x'.repeat(65_536))
}

const finished = () =>
  ({ stopReason: 'end_turn', usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 } }) as PromptResponse

async function pieces({ client, sessionId, text }: Prompt): Promise<void> {
  const sent: Promise<void>[] = []
  await inPieces(text, (piece) => sent.push(say(client, sessionId, piece)))
  await Promise.all(sent)
}

async function untilCancelled({ cancel }: Session): Promise<PromptResponse> {
  if (!cancel.signal.aborted) await new Promise((resolve) => cancel.signal.addEventListener('abort', resolve))
  return { stopReason: 'cancelled' }
}

/** The recorded request of gemini, or the calls of opencode, with what the person's word then leads to. */
async function askFirst({ client, sessionId }: Prompt, dialect: AcpDialect): Promise<PromptResponse> {
  const recorded = sampleLines(SAMPLES.gemini).find((message) => message['method'] === 'session/request_permission')
  const params = recorded?.['params'] as { toolCall: { toolCallId: string; title: string }; options: never }
  const { toolCallId, title } = params.toolCall
  if (dialect !== 'gemini') {
    const update = { sessionUpdate: 'tool_call', toolCallId, title, kind: 'other', status: 'pending' } as const
    await client.notify('session/update', { sessionId, update })
  }
  const asked = { ...params, sessionId } as RequestPermissionRequest
  const answer = await client.request('session/request_permission', asked)
  const chosen = answer.outcome.outcome === 'selected' ? answer.outcome.optionId : 'cancelled'
  const isAllowed = chosen.startsWith('proceed')
  const update = { toolCallId, title, status: isAllowed ? 'completed' : 'failed' } as const
  await client.notify('session/update', { sessionId, update: { sessionUpdate: 'tool_call_update', ...update } })
  await say(client, sessionId, `chosen: ${chosen}`)
  return finished()
}

/** `error-401` and its like: each in the agent's own way. */
async function failAs(dialect: AcpDialect, { client, sessionId }: Prompt): Promise<PromptResponse> {
  const status = Number(scenario.slice('error-'.length))
  const body = JSON.stringify({ error: { code: status, message: `fake ${status}`, status: 'FAKE' } })
  if (dialect === 'gemini') throw new RequestError(status, body)
  if (dialect === 'codex') {
    const update = { sessionUpdate: 'session_info_update', _meta: { codex: { threadStatus: { type: 'systemError' } } } }
    await client.notify('session/update', { sessionId, update: update as never })
    await say(client, sessionId, body)
    return finished()
  }
  if (dialect === 'plain') throw new RequestError(-32603, `Internal error: API Error: ${status} fake ${status}`)
  throw new RequestError(-32603, `Internal error: fake ${status}`, { service: 'session', errorName: 'APIError' })
}

function unknownSession(dialect: AcpDialect, sessionId: string): RequestError {
  if (dialect === 'opencode') return new RequestError(-32603, 'Internal error: OpenCode service failure')
  const details = `Invalid session identifier "${sessionId}".`
  return dialect === 'gemini'
    ? new RequestError(-32603, 'Internal error', { details })
    : RequestError.resourceNotFound(sessionId)
}

async function say(client: AgentContext, sessionId: string, text: string): Promise<void> {
  const content = { type: 'text', text } as const
  await client.notify('session/update', { sessionId, update: { sessionUpdate: 'agent_message_chunk', content } })
}
