/**
 * Messages on their way to the platform. A message keeps its id until the platform has taken it, so a repeated send is
 * the same message there and is never run twice. While the platform is away the text stays on the page, over a reload
 * too, and is sent as soon as the platform is back. Messages of one conversation are sent in their order. A message is
 * sent only by the session in which it was written: in another one a person must send it again.
 */

import { useQuery } from '@tanstack/react-query'
import { backoffMs } from '../../../../../src/backoff.ts'
import type { MeView } from '../../../../../src/client/views.ts'
import { MoleculeError } from '../../../../../src/errors.ts'
import { client, clientOfSession, isLoggedOut, reasonOf } from '../../../api/client.ts'
import { keys, queryClient } from '../../../api/queries.ts'
import { type ChosenFile, toParts } from './attachments.ts'
import { newId } from './new-id.ts'

export interface UnsentMessage {
  readonly messageId: string
  /** The session in which a person wrote it. */
  readonly session: string
  readonly workspaceId: string
  readonly contextId: string
  /** The answer to a question of this task. */
  readonly taskId?: string
  readonly text: string
  readonly files: readonly ChosenFile[]
  readonly at: string
  /** `waiting`: tried again by itself. `refused`: a person must act. `sent`: the platform has it. */
  readonly state: 'sending' | 'waiting' | 'refused' | 'sent'
  readonly problem?: string
}

/** Empty while no one is logged in: then nothing can be sent. */
const currentSession = (): string => queryClient.getQueryData<MeView | null>(keys.me)?.token_id ?? ''

const OTHER_SESSION = 'You have logged in again since you wrote it.'

const KEY = ['outgoing']
const STORED = 'molecule.outgoing'
const STORED_MAX = 50
/** Messages that the platform has and no open history has shown yet; older ones are forgotten. */
const SENT_MAX = 50
const RETRY_MS = 1000
const RETRY_MS_MAX = 10_000

queryClient.setQueryDefaults(KEY, { staleTime: Infinity, gcTime: Infinity })

const readAll = (): readonly UnsentMessage[] => queryClient.getQueryData<readonly UnsentMessage[]>(KEY) ?? []

/** The messages of a workspace that are not in its history yet. */
export function useOutgoing(workspaceId: string): readonly UnsentMessage[] {
  const { data = [] } = useQuery<readonly UnsentMessage[]>({ queryKey: KEY, queryFn: restore })
  return data.filter((message) => message.workspaceId === workspaceId)
}

type NewMessage = Pick<UnsentMessage, 'workspaceId' | 'contextId' | 'taskId' | 'text' | 'files'>

/** `messageId` is given where the same message may be asked for twice: "Run again" in two tabs is one message. */
export function sendMessage(message: NewMessage & { readonly messageId?: string }): void {
  const messageId = message.messageId ?? `chat-${newId()}`
  if (readAll().some((each) => each.messageId === messageId && each.state !== 'refused')) return
  const outgoing: UnsentMessage = {
    ...message,
    messageId,
    session: currentSession(),
    at: new Date().toISOString(),
    state: 'sending',
  }
  setAll([...readAll().filter((each) => each.messageId !== messageId), outgoing])
  void drain(outgoing)
}

export function sendAgain(messageId: string): void {
  const message = change(messageId, { state: 'sending', session: currentSession() })
  if (message !== undefined) void drain(message)
}

/** The person takes it back, or the history shows it. */
export function dropOutgoing(messageIds: readonly string[]): void {
  const left = readAll().filter((each) => !messageIds.includes(each.messageId))
  if (left.length !== readAll().length) setAll(left)
}

let hurry = Promise.withResolvers<void>()

/** The platform is back: waiting messages do not wait for the end of their backoff. */
export function hurryOutgoing(): void {
  hurry.resolve()
  hurry = Promise.withResolvers<void>()
}

const draining = new Set<string>()

async function drain({ workspaceId, contextId }: UnsentMessage): Promise<void> {
  const key = `${workspaceId} ${contextId}`
  if (draining.has(key)) return
  draining.add(key)
  try {
    for (;;) {
      const next = readAll().find(
        (each) =>
          each.workspaceId === workspaceId &&
          each.contextId === contextId &&
          (each.state === 'sending' || each.state === 'waiting'),
      )
      if (next === undefined) return
      await sendUntilTaken(next)
    }
  } finally {
    draining.delete(key)
  }
}

async function sendUntilTaken(message: UnsentMessage): Promise<void> {
  const { messageId, workspaceId, contextId, taskId, text, files } = message
  for (let failures = 0; ; failures++) {
    try {
      const parts = await toParts(text, files)
      const ids = { messageId, contextId, taskId }
      await clientOfSession(message.session).sendMessage(
        workspaceId,
        { ...ids, role: 'ROLE_USER', parts },
        { wait: false },
      )
      change(messageId, { state: 'sent' })
      return
    } catch (thrown) {
      if (isLoggedOut(thrown) && (await isOfOtherSession(message))) return
      const canRetry = thrown instanceof MoleculeError && thrown.retryable && !isLoggedOut(thrown)
      const changed = change(messageId, { state: canRetry ? 'waiting' : 'refused', problem: problemOf(thrown) })
      if (changed === undefined || !canRetry) return
      await waitFor(backoffMs(failures, RETRY_MS, RETRY_MS_MAX))
      if (!readAll().some((each) => each.messageId === messageId)) return
    }
  }
}

/** Another tab may have logged in another person, and its cookie is the cookie of this page. */
async function isOfOtherSession({ messageId, session: written }: UnsentMessage): Promise<boolean> {
  const me = await client.call('GET /me').catch(() => undefined)
  if (me === undefined || me.token_id === written) return false
  change(messageId, { state: 'refused', problem: OTHER_SESSION })
  if (me.token_id !== currentSession()) location.reload()
  return true
}

/** The client names the address of the platform, which is the address of this page. */
const problemOf = (thrown: unknown): string =>
  thrown instanceof MoleculeError && thrown.code === 'timeout' ? 'The platform cannot be reached.' : reasonOf(thrown)

function waitFor(ms: number): Promise<void> {
  return Promise.race([new Promise<void>((resolve) => setTimeout(resolve, ms)), hurry.promise])
}

/** Undefined where the message is no longer there. */
function change(
  messageId: string,
  { state, problem, session }: Pick<UnsentMessage, 'state' | 'problem'> & { readonly session?: string },
): UnsentMessage | undefined {
  const before = readAll().find((each) => each.messageId === messageId)
  if (before === undefined) return undefined
  const { problem: _old, ...rest } = before
  const after = { ...rest, state, problem, ...(session !== undefined && { session }) }
  setAll(readAll().map((each) => (each.messageId === messageId ? after : each)))
  return after
}

function setAll(messages: readonly UnsentMessage[]): void {
  const sent = messages.filter(({ state }) => state === 'sent')
  const forgotten = new Set(sent.slice(0, -SENT_MAX))
  queryClient.setQueryData(
    KEY,
    messages.filter((message) => !forgotten.has(message)),
  )
  // Files are not kept: they may be larger than the browser's storage.
  const kept = messages.filter(({ state, files }) => state !== 'sent' && files.length === 0).slice(-STORED_MAX)
  try {
    if (kept.length === 0) localStorage.removeItem(STORED)
    else localStorage.setItem(STORED, JSON.stringify(kept))
  } catch {
    // The storage is full or refused: the messages live as long as the page.
  }
}

/** After a reload, messages that the platform has not taken are sent again, with their ids. */
function restore(): readonly UnsentMessage[] {
  const known = readAll()
  if (known.length > 0) return known
  try {
    const kept = JSON.parse(localStorage.getItem(STORED) ?? '[]') as readonly UnsentMessage[]
    const stored = kept.map((message) =>
      message.session === currentSession()
        ? message
        : { ...message, state: 'refused' as const, problem: OTHER_SESSION },
    )
    // After this function has returned, because its answer becomes the list.
    setTimeout(() => {
      for (const message of stored) if (message.state !== 'refused') void drain(message)
    })
    return stored
  } catch {
    return []
  }
}

/** The browser asks before it leaves a page whose message with files is not sent. */
addEventListener('beforeunload', (event) => {
  if (readAll().some(({ state, files }) => state !== 'sent' && files.length > 0)) event.preventDefault()
})
