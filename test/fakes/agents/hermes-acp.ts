/**
 * The ACP side of a fake hermes, after the source of its ACP adapter and the traps that were seen with the real one:
 * it "resumes" an unknown session by silently beginning another and refuses the prompt for the first; a cancel during a
 * tool is answered with an error, and the session stays busy; a provider's error is the answer; a leading `/` is a command.
 * Not on the SDK's agent side, which has no `session/set_model`.
 */
import { randomUUID } from 'node:crypto'
import { createInterface } from 'node:readline'
import { flood, inPieces, loadSession, print, saveSession, scenario, startDetachedProcess } from './fake-agent.ts'

interface Session {
  readonly prompts: string[]
  readonly cancel: { run: () => void; requested: boolean }
  isBusy: boolean
  model: string
}

type Params = Readonly<Record<string, unknown>>

class RpcFailure extends Error {
  readonly code = -32603
}

const END_TURN = { stopReason: 'end_turn' }
const FINISHED = { ...END_TURN, usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 } }
const MODELS = { availableModels: [], currentModelId: 'fake:default' }
const INITIALIZED = {
  protocolVersion: 1,
  agentInfo: { name: 'hermes-agent', version: '0.21.5' },
  agentCapabilities: {
    loadSession: true,
    promptCapabilities: { image: true },
    sessionCapabilities: { fork: {}, list: {}, resume: {} },
  },
  authMethods: [],
}

const sessions = new Map<string, Session>()
const openRequests = new Map<number, (result: Params) => void>()
let lastId = 0

export function hermesAcp(): void {
  createInterface({ input: process.stdin }).on('line', (line) => void receive(JSON.parse(line)))
}

async function receive({ id, method, params = {}, result }: { id?: number; method?: string } & Params): Promise<void> {
  if (method === undefined) return openRequests.get(Number(id))?.(result as Params)
  try {
    const answer = await handle(method, params as Params)
    if (id !== undefined) send({ id, result: answer })
  } catch (error) {
    if (!(error instanceof RpcFailure)) throw error
    send({ id, error: { code: error.code, message: 'Internal error', data: { details: error.message } } })
  }
}

async function handle(method: string, params: Params): Promise<unknown> {
  const sessionId = String(params['sessionId'])
  switch (method) {
    case 'initialize':
      return INITIALIZED
    case 'session/new':
      return newSession()
    case 'session/resume':
      return resume(sessionId)
    case 'session/set_model':
      Object.assign(sessions.get(sessionId) ?? {}, { model: params['modelId'] })
      return {}
    case 'session/cancel':
      return cancel(sessionId)
    case 'session/prompt':
      return prompt(sessionId, (params['prompt'] as { text: string }[]).map(({ text }) => text).join(''))
    default:
      throw new RpcFailure(`Method not found: ${method}`)
  }
}

function newSession(): Params {
  if (scenario === 'not-configured') throw new RpcFailure('No inference provider configured. Run "hermes model".')
  const sessionId = randomUUID()
  open(sessionId, [])
  return { sessionId, models: MODELS, modes: {} }
}

async function resume(sessionId: string): Promise<Params> {
  const prompts = scenario === 'lost' ? undefined : loadSession(sessionId)
  if (prompts === undefined) newSession()
  else open(sessionId, prompts)
  // The real one sends the history, as for session/load.
  for (const text of prompts ?? []) say(sessionId, `before: ${text}`)
  return { models: MODELS, modes: {} }
}

const open = (sessionId: string, prompts: string[]) =>
  sessions.set(sessionId, {
    prompts,
    cancel: { run: () => {}, requested: false },
    isBusy: false,
    model: 'fake:default',
  })

function cancel(sessionId: string): null {
  const session = sessions.get(sessionId)
  if (session !== undefined) session.cancel.requested = true
  session?.cancel.run()
  return null
}

async function prompt(sessionId: string, text: string): Promise<Params> {
  const session = sessions.get(sessionId)
  if (session === undefined) return { stopReason: 'refusal' }
  if (text.trim() === '') return END_TURN
  if (text.trim().startsWith('/reset')) {
    session.prompts.length = 0
    say(sessionId, 'Conversation history cleared.')
    return END_TURN
  }
  if (session.isBusy) {
    say(sessionId, 'Queued for the next turn. (1 queued)')
    return END_TURN
  }
  session.prompts.push(text)
  saveSession(sessionId, session.prompts)
  return await play({ sessionId, session, text })
}

interface HermesPrompt {
  readonly sessionId: string
  readonly session: Session
  readonly text: string
}

async function play({ sessionId, session, text }: HermesPrompt): Promise<Params> {
  switch (scenario) {
    case 'echo':
    case 'lost':
      await inPieces(text, (piece) => say(sessionId, piece))
      return FINISHED
    case 'count':
      say(sessionId, `n=${session.prompts.length} model=${session.model}`)
      return FINISHED
    case 'environment':
      say(sessionId, JSON.stringify({ names: Object.keys(process.env), argv: process.argv.slice(2) }))
      return FINISHED
    case 'tool':
      return await runTool(sessionId)
    case 'empty':
      say(sessionId, '⚠️ No reply: the model returned an empty response.')
      return END_TURN
    case 'endless':
      // The process of a tool: the cancel fails, and the session stays busy.
      startDetachedProcess()
      session.isBusy = true
      await canceled(session)
      throw new RpcFailure('')
    case 'flood':
      return await flood(`${JSON.stringify(textUpdate(sessionId, 'x'.repeat(1000)))}\n`)
    case 'http-as-answer':
      say(sessionId, 'HTTP 404: the page does not exist, said the model.')
      return FINISHED
    default: {
      // error-401, error-429, ...
      const status = scenario.slice('error-'.length)
      const retries = status === '401' ? '' : 'API call failed after 3 retries: '
      say(sessionId, `${retries}HTTP ${status}: fake ${status}`)
      return END_TURN
    }
  }
}

/** Asks before a dangerous command, as hermes does; the text after a tool begins with two blank lines. */
async function runTool(sessionId: string): Promise<Params> {
  const rawInput = { command: 'rm -rf /home/user/work', description: 'delete in root path' }
  const toolCall = { toolCallId: 'perm-check-1', title: 'delete in root path', kind: 'execute', rawInput }
  const options = [
    { optionId: 'allow_once', kind: 'allow_once', name: 'Allow once' },
    { optionId: 'allow_session', kind: 'allow_always', name: 'Allow for session' },
    { optionId: 'allow_always', kind: 'allow_always', name: 'Allow always' },
    { optionId: 'deny', kind: 'reject_once', name: 'Deny' },
  ]
  const answer = await request('session/request_permission', { sessionId, toolCall, options })
  const { optionId = 'cancelled' } = answer['outcome'] as { optionId?: string }
  const update = { toolCallId: 'tc-1', title: 'terminal: rm -rf', kind: 'execute' }
  const status = optionId.startsWith('allow') ? 'completed' : 'failed'
  notify(sessionId, { sessionUpdate: 'tool_call', ...update, status: 'pending' })
  notify(sessionId, { sessionUpdate: 'tool_call_update', ...update, status })
  say(sessionId, `\n\nchosen: ${optionId}`)
  return FINISHED
}

const canceled = async (session: Session) => {
  if (!session.cancel.requested) await new Promise<void>((resolve) => Object.assign(session.cancel, { run: resolve }))
}

function request(method: string, params: Params): Promise<Params> {
  lastId += 1
  const id = lastId
  send({ id, method, params })
  return new Promise((resolve) => openRequests.set(id, resolve))
}

const textUpdate = (sessionId: string, text: string) => {
  const update = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } }
  return { jsonrpc: '2.0', method: 'session/update', params: { sessionId, update } }
}

const say = (sessionId: string, text: string) => print(`${JSON.stringify(textUpdate(sessionId, text))}\n`)

const notify = (sessionId: string, update: Params) => send({ method: 'session/update', params: { sessionId, update } })

const send = (message: Params) => print(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
