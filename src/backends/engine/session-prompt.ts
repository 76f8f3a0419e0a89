/**
 * The prompt for an agent that has no flag for a system prompt: the instructions precede the first prompt of a session,
 * and again any prompt after they changed. The session token therefore holds a digest of the instructions that the
 * session knows, besides the agent's id of the session and, for some agents, what is in `SessionFacts`.
 * Invariant: a session gets unchanged instructions once.
 */
import { hash } from 'node:crypto'
import type { Turn } from '../backend.ts'

/** What the next turn must know of a session. */
export interface SessionFacts {
  /** The start time of the session. */
  readonly begunMs?: number | undefined
  /** The model that a new session gets, where this one was given another. A session keeps its model. */
  readonly usualModel?: string | undefined
}

export interface SessionPrompt extends SessionFacts {
  /** The prompt, after the instructions if the session does not know them. */
  readonly prompt: string
  /** The agent's id of the session to resume. */
  readonly sessionId?: string
  /** The token to store for the session that the agent names. */
  readonly token: (sessionId: string, facts?: SessionFacts) => string
}

export function sessionPromptOf(turn: Pick<Turn, 'prompt' | 'systemPrompt' | 'sessionToken'>): SessionPrompt {
  const known = parseToken(turn.sessionToken)
  const digest = digestOf(turn.systemPrompt)
  const token = (id: string, facts: SessionFacts = {}) => `${digest}${factsText(facts)}:${id}`
  const isKnown = turn.systemPrompt.trim() === '' || known?.digest === digest
  const prompt = isKnown ? turn.prompt : `${wrapInstructions(turn.systemPrompt, known !== undefined)}\n\n${turn.prompt}`
  if (known === undefined) return { prompt, token }
  const { digest: _digest, ...session } = known
  return { prompt, token, ...session }
}

/** A valid session id of an agent. It goes on a command line, so it must not look like a flag. */
export function isSessionId(value: unknown): value is string {
  return typeof value === 'string' && /^[A-Za-z0-9_][\w.:@/-]{0,199}$/.test(value)
}

interface ParsedToken extends SessionFacts {
  readonly digest: string
  readonly sessionId: string
}

/** A longer name of a model is not stored. */
const MODEL_BYTES_MAX = 600

function parseToken(token: string | undefined): ParsedToken | undefined {
  const [, digest, begun, model, sessionId] = TOKEN.exec(token ?? '') ?? []
  if (digest === undefined || !isSessionId(sessionId)) return undefined
  return {
    digest,
    sessionId,
    ...(begun !== undefined && { begunMs: Number(begun) }),
    ...(model !== undefined && { usualModel: Buffer.from(model, 'base64url').toString() }),
  }
}

/** `<digest>@<begunMs>+<usualModel>:<session id>`, with the model in base64url: its name may hold anything. */
const TOKEN = /^([0-9a-f]{16}|none)(?:@(\d{1,15}))?(?:\+([\w-]{1,800}))?:(.+)$/s

function factsText({ begunMs, usualModel }: SessionFacts): string {
  const model = Buffer.from(usualModel ?? '')
  const isKept = model.length > 0 && model.length <= MODEL_BYTES_MAX
  return `${begunMs === undefined ? '' : `@${begunMs}`}${isKept ? `+${model.toString('base64url')}` : ''}`
}

function wrapInstructions(systemPrompt: string, isChange: boolean): string {
  const note = isChange ? 'These instructions replace the ones given before.\n' : ''
  return `<instructions>\n${note}${systemPrompt.trim()}\n</instructions>`
}

function digestOf(systemPrompt: string): string {
  if (systemPrompt.trim() === '') return 'none'
  return hash('sha256', systemPrompt, 'hex').slice(0, 16)
}
