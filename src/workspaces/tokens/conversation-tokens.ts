/**
 * The tokens that the children of turns get: each speaks for its workspace in one conversation. They are computed from
 * a secret of the platform and checked by computing them again, so that a turn costs no row and a warm agent, which
 * outlives its turns, keeps the one it has. Invariant: nothing but this secret makes a token that is read here.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { type Store, sql, type Transaction } from '../../store/store.ts'
import { SECRET_BYTES, SECRET_PREFIX } from '../tokens.ts'

export interface ConversationSubject {
  readonly workspaceId: string
  readonly conversationId: string
}

export interface ConversationTokens {
  issue(subject: ConversationSubject): string
  /** Whom the token speaks for; undefined for anything else. */
  read(token: string): ConversationSubject | undefined
}

/** Like every token of ours, so that it is recognised and masked wherever it stands. */
const TOKEN_PREFIX = `${SECRET_PREFIX}conversation_`
const TOKEN_PATTERN = /^mol_conversation_(ws_[0-9A-Z]{26})_([0-9A-Z]{26})_[\w-]{43}$/

/** Conversations whose token is kept: between two messages, computing it is the dearest step of a brief. */
const ISSUED_MAX = 1000

export function createConversationTokens(secret: Buffer): ConversationTokens {
  const issued = new Map<string, string>()
  const compute = ({ workspaceId, conversationId }: ConversationSubject) => {
    const mac = createHmac('sha256', secret).update(`${workspaceId} ${conversationId}`).digest('base64url')
    return `${TOKEN_PREFIX}${workspaceId}_${conversationId}_${mac}`
  }
  return {
    issue(subject) {
      const name = `${subject.workspaceId} ${subject.conversationId}`
      const known = issued.get(name)
      if (known !== undefined) return known
      if (issued.size >= ISSUED_MAX) issued.clear()
      const token = compute(subject)
      issued.set(name, token)
      return token
    },
    read(token) {
      const [, workspaceId, conversationId] = TOKEN_PATTERN.exec(token) ?? []
      if (workspaceId === undefined || conversationId === undefined) return undefined
      const subject = { workspaceId, conversationId }
      return timingSafeEqual(Buffer.from(compute(subject)), Buffer.from(token)) ? subject : undefined
    },
  }
}

const SECRET_NAME = 'conversation-tokens'

/** The platform's secret for them; made by whoever comes first, the same for every node. */
export async function ensureConversationSecret(store: Store): Promise<Buffer> {
  const fresh = randomBytes(SECRET_BYTES).toString('hex')
  return Buffer.from(await store.write(() => insertIfAbsent(fresh)), 'hex')
}

function* insertIfAbsent(fresh: string): Transaction<string> {
  yield* sql('insert into secrets (name, value) values ($1, $2) on conflict (name) do nothing', [SECRET_NAME, fresh])
  const [kept] = yield* sql<{ value: string }>('select value from secrets where name = $1', [SECRET_NAME])
  return kept?.value ?? fresh
}
