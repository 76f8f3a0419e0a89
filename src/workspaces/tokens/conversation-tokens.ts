/**
 * The tokens that child processes of a turn get: each acts as its workspace in one conversation. They are an HMAC of a
 * secret of the platform, so a turn writes no row, and a warm agent, which outlives its turns, keeps its token.
 * Invariant: only the holder of the secret can make a token that `read` accepts.
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
  /** The subject of the token; undefined for any other text. */
  read(token: string): ConversationSubject | undefined
}

/** Starts like every token of the platform, so that the log hides it. */
const TOKEN_PREFIX = `${SECRET_PREFIX}conversation_`
const TOKEN_PATTERN = /^mol_conversation_(ws_[0-9A-Z]{26})_([0-9A-Z]{26})_[\w-]{43}$/

/** Tokens in the cache: computing one is the most expensive step of a brief. At the limit the cache is cleared. */
const ISSUED_MAX = 1000

export function createConversationTokens(secret: Buffer): ConversationTokens {
  const issued = new Map<string, string>()
  const compute = ({ workspaceId, conversationId }: ConversationSubject) => {
    const mac = createHmac('sha256', secret).update(`${workspaceId} ${conversationId}`).digest('base64url')
    return `${TOKEN_PREFIX}${workspaceId}_${conversationId}_${mac}`
  }
  return {
    issue(subject) {
      const key = `${subject.workspaceId} ${subject.conversationId}`
      const known = issued.get(key)
      if (known !== undefined) return known
      if (issued.size >= ISSUED_MAX) issued.clear()
      const token = compute(subject)
      issued.set(key, token)
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

/** The secret of the platform, the same for every node. The first node makes it. */
export async function ensureConversationSecret(store: Store): Promise<Buffer> {
  const fresh = randomBytes(SECRET_BYTES).toString('hex')
  return Buffer.from(await store.write(() => insertIfAbsent(fresh)), 'hex')
}

function* insertIfAbsent(fresh: string): Transaction<string> {
  yield* sql('insert into secrets (name, value) values ($1, $2) on conflict (name) do nothing', [SECRET_NAME, fresh])
  const [kept] = yield* sql<{ value: string }>('select value from secrets where name = $1', [SECRET_NAME])
  return kept?.value ?? fresh
}
