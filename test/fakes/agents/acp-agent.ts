/**
 * A fake ACP agent on the agent side of the published SDK. Where the real agents differ it has their dialects: model
 * errors, unknown sessions, permission requests. One process has many sessions; they are on disk, so that a new process
 * can load them.
 */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { appendFileSync } from 'node:fs'
import { Readable, Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type AgentContext,
  agent,
  ndJsonStream,
  type PromptResponse,
  RequestError,
  type RequestPermissionRequest,
  type SessionUpdate,
} from '@agentclientprotocol/sdk'
import {
  inPieces,
  loadModel,
  loadSession,
  printError,
  readSampleLines,
  saveModel,
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
  /** The MCP servers that the client passed. */
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

/** It opens a session without a login, and wants one at the first prompt. */
const LATE = 'needs-login-late'

export function acpAgent(dialect: AcpDialect): void {
  const sessions = new Map<string, Session>()
  let isLoggedIn = false
  const recorded = readSampleLines(SAMPLES[dialect])
  const initialized = recorded.find((message) => message['id'] === 0 && 'result' in message)?.['result'] as object
  const open = (sessionId: string, prompts: string[], mcp: readonly unknown[] = []) =>
    sessions.set(sessionId, {
      prompts,
      cancel: new AbortController(),
      model: { current: loadModel(sessionId) ?? 'default' },
      mcp,
    })
  agent({ name: `fake ${dialect}` })
    .onRequest('initialize', async () => {
      if (scenario === 'slow') await delay(SLOW_MS)
      if (dialect === 'gemini') sweepSessions()
      return Object.assign(structuredClone(initialized), overrides()) as never
    })
    .onRequest('authenticate', ({ params }) => {
      if (params.methodId !== 'key') throw RequestError.internalError(undefined, 'this method has no key')
      isLoggedIn = true
      return {}
    })
    .onRequest('session/new', async ({ params }) => {
      if (scenario.startsWith('needs-login') && scenario !== LATE && !isLoggedIn) throw RequestError.authRequired()
      const sessionId = dialect === 'opencode' ? `ses_${randomUUID().replaceAll('-', '')}` : randomUUID()
      open(sessionId, [], params.mcpServers)
      if (dialect === 'gemini') saveSession(sessionId, [])
      if (scenario === 'slow') await delay(SLOW_MS)
      return { sessionId, ...modelChoice(sessionId) }
    })
    .onRequest('session/load', async ({ params, client }) => {
      const prompts = loadSession(params.sessionId)
      if (prompts === undefined || scenario === 'lost') throw unknownSession(dialect, params.sessionId)
      // Loading a session replays its messages, which are not part of the next reply. The real gemini answers first and
      // replays afterwards.
      const replay = async () => {
        for (const text of prompts) await sendText(client, params.sessionId, `before: ${text}`)
      }
      if (dialect === 'gemini') setTimeout(replay, 30)
      else await replay()
      open(params.sessionId, prompts)
      return { ...modelChoice(params.sessionId) }
    })
    .onRequest('session/resume', ({ params }) => {
      const prompts = loadSession(params.sessionId)
      if (prompts === undefined || scenario === 'lost') throw unknownSession(dialect, params.sessionId)
      open(params.sessionId, prompts)
      return { ...modelChoice(params.sessionId) }
    })
    .onRequest('session/set_config_option', ({ params }) => {
      const session = sessions.get(params.sessionId)
      const { value } = params as { value?: unknown }
      if (value !== 'default' && value !== 'fake/large') throw RequestError.invalidParams(`model not found: ${value}`)
      if (session) session.model.current = value
      saveModel(params.sessionId, value)
      return { configOptions: [] }
    })
    .onNotification('session/cancel', ({ params }) => sessions.get(params.sessionId)?.cancel.abort())
    .onRequest('session/prompt', async ({ params, client }) => {
      const session = sessions.get(params.sessionId)
      if (session === undefined) throw unknownSession(dialect, params.sessionId)
      if (scenario === LATE && !isLoggedIn) throw RequestError.authRequired()
      session.cancel = new AbortController()
      const text = params.prompt.map((block) => (block.type === 'text' ? block.text : '')).join('')
      session.prompts.push(text)
      // gemini does not store a session again that was swept while it was open.
      if (dialect !== 'gemini' || loadSession(params.sessionId)) saveSession(params.sessionId, session.prompts)
      if (scenario === 'meta') {
        await sendText(client, params.sessionId, JSON.stringify(params._meta ?? null))
        return { stopReason: 'end_turn' as const }
      }
      return await play({ sessionId: params.sessionId, text, session, client }, dialect)
    })
    .connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>))
}

/** The second description is hostile: too long, and it drives a terminal. */
const AUTH_METHODS = [
  { id: 'key', name: 'API key', description: 'Takes the key of the environment' },
  { id: 'account', name: 'Account', description: `\u001b]52;c;evil\u0007${'x'.repeat(5000)}` },
]

function overrides(): object {
  if (scenario === 'acp-2') return { protocolVersion: 2 }
  if (scenario === 'needs-login' || scenario === LATE) return { authMethods: AUTH_METHODS }
  if (scenario === 'needs-login-silent') return { authMethods: [] }
  if (scenario === 'no-urls') return { agentCapabilities: { mcpCapabilities: { http: false } } }
  return scenario === 'no-load' ? { agentCapabilities: { loadSession: false } } : {}
}

function modelChoice(sessionId: string): object {
  if (scenario !== 'models') return {}
  const options = [
    { value: 'default', name: 'Default' },
    { value: 'fake/large', name: 'Large' },
  ]
  return {
    configOptions: [
      {
        id: 'model',
        name: 'Model',
        category: 'model',
        type: 'select',
        currentValue: loadModel(sessionId) ?? 'default',
        options,
      },
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
      return await waitForCancel(session)
    case 'deaf':
      // Ignores a cancel.
      startDetachedProcess()
      return await delay(300_000, { stopReason: 'end_turn' as const })
    case 'flood':
      return await floodOf(prompt)
    case 'dies':
      await sendText(client, sessionId, 'half an ans')
      return process.exit(7)
    case 'refusal':
    case 'max_turn_requests':
    case 'max_tokens':
      await sendText(client, sessionId, text)
      return { stopReason: scenario }
    case 'tool':
      return await askFirst(prompt, dialect)
    case 'mixed':
      return await mixed(prompt)
    case 'silent-limit':
      return await retryInSilence(session)
    case 'mcp-argv':
      spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', '--', '--mcp-config', JSON.stringify(session.mcp)])
      await sendText(client, sessionId, JSON.stringify({ mcp: session.mcp }))
      return finished()
    case 'environment':
    case 'no-urls':
      await sendText(
        client,
        sessionId,
        JSON.stringify({ names: Object.keys(process.env), argv: process.argv.slice(2), mcp: session.mcp }),
      )
      return finished()
    case 'count':
      await sendText(client, sessionId, `n=${session.prompts.length}`)
      return finished()
    case 'models':
      await sendText(client, sessionId, session.model.current)
      return finished()
    case 'needs-login':
    case LATE:
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

/** The prompt chooses: wait for a cancel, fail, answer slowly, or answer at once. */
async function mixed(prompt: Prompt): Promise<PromptResponse> {
  if (prompt.text === 'wait') {
    startDetachedProcess()
    return await waitForCancel(prompt.session)
  }
  if (prompt.text.startsWith('fail')) return await failCalls(prompt)
  if (prompt.text.startsWith('slow')) await delay(1_000)
  await pieces(prompt)
  return finished()
}

/** As gemini does: it logs each refused call to a file, waits longer and longer, and says nothing over ACP. */
async function retryInSilence(session: Session): Promise<PromptResponse> {
  const file = process.env['GEMINI_DEBUG_LOG_FILE'] ?? ''
  for (let attempt = 1; !session.cancel.signal.aborted; attempt += 1) {
    const said = 'You exceeded your current quota, please check your plan and billing details.'
    appendFileSync(
      file,
      `[2026-11-18T22:05:05.450Z] [WARN] Attempt ${attempt} failed: ${said}\nSuggested retry after 1s.. Retrying after 5351ms...\n`,
    )
    await Promise.race([delay(attempt === 1 ? 500 : 120_000, undefined, { ref: false }), waitForCancel(session)])
  }
  return { stopReason: 'cancelled' }
}

/** As opencode does: `fail 1` is one failed call and an error, `fail` alone is one failed call after the other, in silence. */
async function failCalls({ sessionId, text, session }: Prompt): Promise<PromptResponse> {
  const log = (id: string, small: boolean) =>
    printError(
      `timestamp=x level=ERROR run=1 message="stream error" providerID=p modelID=m session.id=${id} small=${small} agent=build mode=primary error.error="AI_APICallError: Overloaded"\n`,
    )
  if (text === 'fail 1') {
    log(sessionId, false)
    throw new RequestError(-32_603, 'Internal error: fake words', { service: 'session', errorName: 'APIError' })
  }
  // The call for a title, and one call of each of two subagents: none of them ends the turn.
  for (const [id, small] of [
    [sessionId, true],
    [sessionId, true],
    ['ses_a', false],
    ['ses_b', false],
  ] as const)
    log(id, small)
  while (!session.cancel.signal.aborted) {
    log(sessionId, false)
    await delay(50)
  }
  return { stopReason: 'end_turn' }
}

async function floodOf({ client, sessionId }: Prompt): Promise<never> {
  for (;;) await sendText(client, sessionId, 'x'.repeat(65_536))
}

const finished = () =>
  ({ stopReason: 'end_turn', usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 } }) as PromptResponse

async function pieces({ client, sessionId, text }: Prompt): Promise<void> {
  const sent: Promise<void>[] = []
  await inPieces(text, (piece) => sent.push(sendText(client, sessionId, piece)))
  await Promise.all(sent)
}

async function waitForCancel({ cancel }: Session): Promise<PromptResponse> {
  if (!cancel.signal.aborted) await once(cancel.signal, 'abort')
  return { stopReason: 'cancelled' }
}

/** A permission request, and the tool call that follows the decision. */
async function askFirst(prompt: Prompt, dialect: AcpDialect): Promise<PromptResponse> {
  const { client, sessionId } = prompt
  if (dialect === 'opencode') return await askForBash(prompt)
  const recorded = readSampleLines(SAMPLES.gemini).find((message) => message['method'] === 'session/request_permission')
  const params = recorded?.['params'] as { toolCall: { toolCallId: string; title: string }; options: never }
  const { toolCallId, title } = params.toolCall
  if (dialect !== 'gemini') {
    const update = { sessionUpdate: 'tool_call', toolCallId, title, kind: 'other', status: 'pending' } as const
    await client.notify('session/update', { sessionId, update })
  }
  const chosen = await requestPermission(client, { ...params, sessionId } as RequestPermissionRequest)
  const update = { toolCallId, title, status: chosen.startsWith('proceed') ? 'completed' : 'failed' } as const
  await client.notify('session/update', { sessionId, update: { sessionUpdate: 'tool_call_update', ...update } })
  await sendText(client, sessionId, `chosen: ${chosen}`)
  return finished()
}

async function requestPermission(client: Prompt['client'], request: RequestPermissionRequest): Promise<string> {
  const { outcome } = await client.request('session/request_permission', request)
  return outcome.outcome === 'selected' ? outcome.optionId : 'cancelled'
}

/** As opencode 1.18.33 was seen to ask: the title is first the name of the tool, then the command. */
async function askForBash({ client, sessionId }: Prompt): Promise<PromptResponse> {
  const command = 'touch "$HOME/done"'
  const call = { toolCallId: 'call_bkENP4r3tXW7ifjc', kind: 'execute' } as const
  const cwd = process.cwd()
  const update = (more: object) =>
    client.notify('session/update', { sessionId, update: { ...call, ...more } as SessionUpdate })
  await update({ sessionUpdate: 'tool_call', title: 'bash', status: 'pending', rawInput: { cwd } })
  const rawInput = { command, description: 'A test command', timeout: 600_000, cwd }
  const running = { sessionUpdate: 'tool_call_update', title: command, status: 'in_progress', rawInput }
  await update(running)
  const chosen = await requestPermission(client, {
    sessionId,
    toolCall: { ...call, title: command, status: 'pending', rawInput: { command } },
    options: [
      { optionId: 'once', kind: 'allow_once', name: 'Allow once' },
      { optionId: 'always', kind: 'allow_always', name: 'Always allow' },
      { optionId: 'reject', kind: 'reject_once', name: 'Reject' },
    ],
  })
  const status = chosen === 'reject' || chosen === 'cancelled' ? 'failed' : 'completed'
  await update({ sessionUpdate: 'tool_call_update', title: command, status })
  await sendText(client, sessionId, `chosen: ${chosen}`)
  return finished()
}

/** Scenarios such as `error-401`, in the form of each agent. */
async function failAs(dialect: AcpDialect, { client, sessionId }: Prompt): Promise<PromptResponse> {
  const status = Number(scenario.slice('error-'.length))
  const body = JSON.stringify({ error: { code: status, message: `fake ${status}`, status: 'FAKE' } })
  if (dialect === 'gemini') throw new RequestError(status, body)
  if (dialect === 'codex') {
    const update = { sessionUpdate: 'session_info_update', _meta: { codex: { threadStatus: { type: 'systemError' } } } }
    await client.notify('session/update', { sessionId, update: update as never })
    await sendText(client, sessionId, body)
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

async function sendText(client: AgentContext, sessionId: string, text: string): Promise<void> {
  const content = { type: 'text', text } as const
  await client.notify('session/update', { sessionId, update: { sessionUpdate: 'agent_message_chunk', content } })
}
