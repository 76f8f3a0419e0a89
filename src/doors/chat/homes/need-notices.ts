/**
 * Tells owners in their home chats what needs a person, when nobody has answered for a while: once for each need, with how to
 * answer. What has buttons in a chat is not told again. Invariant: a notice that did not arrive makes no further notice.
 */
import { toMoleculeError } from '../../../errors.ts'
import { ulid } from '../../../ids.ts'
import { printable } from '../../../printable.ts'
import { shorten } from '../../../truncate.ts'
import type { NeedAnswer } from '../../../views/needs/need-rows.ts'
import { readNeeds } from '../../../views/needs/needs.ts'
import { publicReason } from '../../../views/public-reason.ts'
import { sleep } from '../../../wait.ts'
import type { Place } from '../channel.ts'
import { channelOfDoor, homeDoor, promptDoor, type SessionContext } from '../chat-context.ts'
import type { PromptPosts, StoredPrompt } from '../prompts/prompt-posts.ts'
import type { HomeChat } from '../store/home-chats.ts'
import type { Prompt } from '../store/prompt-log.ts'

/** A person who looks at the page answers within this time. */
const TELL_AFTER_MS = 2 * 60_000
const LOOK_MS = 20_000
/** Open at once in a home chat; further needs are told as these are answered. */
const NOTICES_MAX = 20
/** A look reads so many pages of needs; the most urgent kinds come first. */
const PAGES_MAX = 5
const REASON_CHARACTERS_MAX = 300

const OVER = 'This is over.'

/** Until the session ends. Never rejects. */
export async function keepNotifying(context: SessionContext, posts: Pick<PromptPosts, 'close'>): Promise<void> {
  const { clock, log, signal, stored } = context
  while (!signal.aborted) {
    await look(context, posts).catch((error) =>
      log.warn(
        { err: toMoleculeError(error), channel: stored.name },
        'needs could not be told; they are looked at again',
      ),
    )
    await sleep(clock, LOOK_MS, signal)
  }
}

async function look(context: SessionContext, posts: Pick<PromptPosts, 'close'>): Promise<void> {
  const { homes, promptLog, stored } = context
  const prompts = await promptLog.ofChannel(stored.name)
  const open = prompts.filter(({ askId }) => askId.startsWith(ASK_PREFIX))
  // Most bots have no home chat, and the list of needs is read from many tables.
  if (open.length === 0 && (await homes.ofOwnersOf(stored.name)).length === 0) return
  const { needs, isWhole } = await readAll(context)
  const ids = new Set(needs.map(askIdOf))
  for (const notice of open) if (isWhole && !ids.has(notice.askId)) await posts.close(notice, OVER)
  for (const need of needs) {
    if (!isLate(need, context) || (await hasButtons(need, prompts, context))) continue
    for (const home of await homes.ofOwners(need.workspace_id)) {
      const there = open.filter(({ place }) => place === home.place)
      const isTold = there.some(({ askId }) => askId === askIdOf(need))
      if (home.channel !== stored.name || isTold || there.length >= NOTICES_MAX || isAbout(need, home)) continue
      open.push(await tell(need, home, context))
    }
  }
}

const ASK_PREFIX = 'need '
const askIdOf = ({ kind, id }: NeedAnswer): string => `${ASK_PREFIX}${kind} ${id}`

async function readAll({ store }: SessionContext): Promise<{ needs: NeedAnswer[]; isWhole: boolean }> {
  const needs: NeedAnswer[] = []
  let after: string | undefined
  for (let page = 0; page < PAGES_MAX; page++) {
    const { needs_you: found, next } = await readNeeds(store, { workspaces: [], after })
    needs.push(...found)
    if (next === undefined) return { needs, isWhole: true }
    after = next
  }
  return { needs, isWhole: false }
}

const isLate = ({ since }: NeedAnswer, { clock }: SessionContext): boolean =>
  since !== null && clock.nowMs() - Date.parse(since) >= TELL_AFTER_MS

/** An owner can answer it in a chat, or it is about such a prompt itself. */
async function hasButtons(
  { kind, id }: NeedAnswer,
  prompts: readonly Prompt[],
  { promptLog }: SessionContext,
): Promise<boolean> {
  if (kind === 'permission') return (await promptLog.ofAsk(id)).some(({ isNotice }) => !isNotice)
  if (kind === 'delivery') return (await promptLog.find(id)) !== undefined
  return prompts.some(
    ({ budget, pairing, isNotice }) =>
      !isNotice && ((kind === 'budget' && budget?.id === id) || (kind === 'pairing' && pairing?.code === id)),
  )
}

/** Prevents that a chat that cannot be reached is told so in itself. */
function isAbout({ kind, to = '' }: NeedAnswer, { channel, place }: HomeChat): boolean {
  return kind === 'delivery' && channelOfDoor(to) === channel && to.endsWith(` ${place}`)
}

async function tell(need: NeedAnswer, { place }: HomeChat, context: SessionContext): Promise<Prompt> {
  const { deliveries, promptLog, stored } = context
  const { workspace_id: workspaceId, expires_at: expiresAt } = need
  const text = await textOf(need, place, context)
  const draft = { id: ulid(), channel: stored.name, place, taskId: '', askId: askIdOf(need), text, isNotice: true }
  const notice = await promptLog.add(draft)
  // A turn that waits does not wait for the end of quiet hours: it would be denied by then.
  const door = (expiresAt === undefined ? homeDoor : promptDoor)(stored.name)
  const prompt: StoredPrompt = { buttons: [] }
  const body = { state: 'TASK_STATE_AUTH_REQUIRED', parts: [{ text: notice.text }], prompt } as const
  await deliveries.add({ id: notice.id, workspaceId, purpose: 'notice', door, channel: place, body })
  return notice
}

async function textOf({ workspace_id: id, reason, ...need }: NeedAnswer, place: string, context: SessionContext) {
  const { workspaces, chatLog, stored } = context
  const { description = '{}' } = (await chatLog.find({ channel: stored.name, place })) ?? {}
  // A reason may name a program or a folder by its path, and everybody in a group reads it.
  const shown = (JSON.parse(description) as Partial<Place>).isDirect ? reason : publicReason(reason)
  const name = (await workspaces.get(id))?.name ?? 'Molecule'
  const ways = need.actions.map((action) => `\`molecule pending ${action.name} ${need.id}\``)
  return `${asCode(name)} needs you: ${asCode(shown)}. Answer it on the page under "needs you", or with ${ways.join(', ')}.`
}

/** Text from outside: as code it makes no link and no other format. */
const asCode = (text: string): string =>
  `\`${shorten(printable(text).replaceAll(/\s+/g, ' '), REASON_CHARACTERS_MAX).replaceAll('`', "'")}\``
