/**
 * Sends the deliveries of a channel: replies, failures and questions, in parts, each part at most once. A part that may
 * have arrived is sent again only where the service drops a second copy; else a person decides.
 */
import { createHash } from 'node:crypto'
import { toMoleculeError } from '../../../errors.ts'
import type { Delivery, DeliveryBody, DeliveryPart, DeliveryResult } from '../../../inbox/delivery.ts'
import type { Part } from '../../../protocol/a2a.ts'
import { sleep, type WakeUp } from '../../../wait.ts'
import type { Channel, ChatPost, ChatPostFile, SendResult } from '../channel.ts'
import { deliveryDoor, firstText, type SessionContext } from '../chat-context.ts'
import { NOT_SHOWN, promptArrived, type StoredPrompt } from '../prompts/prompt-posts.ts'
import { toChatResult } from './chat-result.ts'
import { editLive, isEdit, type OnePart, type PartContent } from './edit-live.ts'

/** A longer answer is sent as a file, after its first part. */
const TEXT_PARTS_MAX = 8
/** So is an answer with more characters, whatever a channel says that fits into a message. It is not rendered whole. */
const TEXT_CHARACTERS_MAX = 64 * 1024
const WHOLE_ANSWER_NAME = 'answer.md'
const WHOLE_ANSWER_NOTE = 'This is the beginning. The whole answer is in the file.'
/** Of files that were not sent, in one sentence. */
const NAMES_CHARACTERS_MAX = 300
/** Files of an answer, and of one message of it. */
const FILES_MAX = 10
/** The service answered nothing; it drops a second copy, so the part is sent again after this time. */
const RESEND_MS = 1000

/** The inbox says when there is a delivery. A hint of another process may be lost: then it is noticed within this time. */
const LOOK_MS = 5000
/** The messages that may have arrived are looked for at once, so that no chat waits long for those of another one. */
const FIND_MS_MAX = 5000
/** The store could not be read, or another process is just looking at the next delivery. */
const AGAIN_MS = 1000

/** Sends what is due until the session ends. `before` runs before each look, e.g. for people who were let in. */
export async function keepDelivering(
  context: SessionContext,
  before: () => Promise<void>,
  wakeUp: WakeUp,
): Promise<void> {
  const { deliveries, door, signal, clock, log, stored } = context
  const sending = new Set<Promise<void>>()
  const warn = (error: unknown, text: string) => log.warn({ err: toMoleculeError(error), channel: stored.name }, text)
  const stopWatching = deliveries.watch(wakeUp.wake)
  await settleInterrupted(context).catch((error) => warn(error, 'interrupted deliveries could not be read'))
  while (!signal.aborted) {
    let waitMs = AGAIN_MS
    try {
      await before()
      for (;;) {
        const delivery = await deliveries.take(door, (body) => splitAnswer(body, context))
        if (delivery === undefined) break
        const sent = deliver(delivery, context)
          .catch(async (error) => {
            warn(error, 'a delivery failed unexpectedly')
            // Left as it is, it would hold back all later answers of its place, and no person would see it.
            await deliveries.finish(delivery.id, { type: 'unknown', error: toMoleculeError(error).message })
          })
          .catch((error) => warn(error, 'a failed delivery could not be stored'))
          .finally(() => {
            sending.delete(sent)
            wakeUp.wake()
          })
        sending.add(sent)
      }
      waitMs = Math.min(LOOK_MS, (await deliveries.dueInMs(door)) ?? LOOK_MS) || AGAIN_MS
    } catch (error) {
      warn(error, 'deliveries could not be read; trying again')
    }
    await wakeUp.wait(signal, (callback) => clock.after(waitMs, callback))
  }
  stopWatching()
  await Promise.all(sending)
}

/** After a crash: a part that was being sent is looked for, or sent again where the service drops a second copy. */
async function settleInterrupted(context: SessionContext): Promise<void> {
  const { deliveries, channel, clock, signal } = context
  const found = (await deliveries.interrupted(context.door)).map(async (delivery) => {
    const part = delivery.parts?.find(({ state }) => state === 'sending')
    if (part === undefined) return
    // An edit may be done twice.
    if (isEdit(part)) return await deliveries.resume(delivery.id)
    if ((part.triedAgoMs ?? 0) < channel.limits.nonceMs) return await deliveries.resume(delivery.id)
    const messageId = await findPart(delivery, part, context)
    if (messageId !== undefined) await deliveries.resume(delivery.id, messageId)
  })
  await Promise.race([Promise.all(found), sleep(clock, FIND_MS_MAX, signal)])
}

async function deliver(delivery: Delivery, context: SessionContext): Promise<void> {
  const { deliveries, signal } = context
  const quietMs = (await context.quietMs?.(delivery.channel)) ?? 0
  if (quietMs > 0)
    return await deliveries.finish(delivery.id, { type: 'later', error: 'quiet hours', retryAfterMs: quietMs })
  let receipt: string | undefined
  for (const part of delivery.parts ?? []) {
    if (part.state === 'sent') continue
    // Nothing was sent yet of this part: after a restart it goes on here.
    if (await isOver(delivery, context)) return await deliveries.withdraw(delivery.id)
    if (signal.aborted)
      return await deliveries.finish(delivery.id, { type: 'later', error: 'the platform stops', retryAfterMs: 0 })
    const { result, ...sent } = await sendPart({ delivery, part }, context)
    const failed = await judge(result, sent, context)
    if (failed !== undefined) {
      const needsPerson = failed.type === 'unknown' || (failed.type === 'failed' && failed.final === true)
      if (needsPerson) await showUndelivered(delivery, context)
      await deliveries.finish(delivery.id, failed)
      if (needsPerson) await endLive(delivery, context)
      if (result.type === 'failed' && result.movedTo !== undefined)
        await context.moved(delivery.channel, result.movedTo)
      return
    }
    receipt = result.type === 'sent' ? result.messageId : receipt
  }
  await deliveries.finish(delivery.id, { type: 'sent', ...(receipt !== undefined && { receipt }) })
  await endLive(delivery, context)
}

/** The first text of an answer replaces the live message of its task; all else is a new message. */
async function sendPart(
  { delivery, part: given }: OnePart,
  context: SessionContext,
): Promise<OnePart & { readonly result: SendResult }> {
  const { part, result: edited } = await editLive({ delivery, part: given }, context)
  if (edited !== undefined && (edited.type !== 'sent' || isEdit(part))) return { delivery, part, result: edited }
  if (edited === undefined) await context.deliveries.beginPart(delivery.id, part.n, part.content)
  const result = await sendPost(await toPost(delivery, part, context), context, delivery)
  const { taskId, channel: place } = delivery
  const isAnswer = taskId !== undefined && context.door === deliveryDoor(context.stored.name)
  if (result.type === 'sent' && isAnswer) context.live.posted(place, taskId)
  return { delivery, part, result }
}

/** What still shows the progress of an answer that has ended. A prompt ends nothing. */
const endLive = async ({ channel, taskId, body }: Delivery, { live }: SessionContext): Promise<void> => {
  if (body.prompt === undefined && taskId !== undefined) await live.end(channel, taskId)
}

/** A prompt with buttons may have been answered elsewhere while it waited. */
async function isOver({ id, body }: Delivery, { promptLog }: SessionContext): Promise<boolean> {
  if (body.prompt === undefined || (body.prompt as StoredPrompt).isQuestion) return false
  return (await promptLog.find(id)) === undefined
}

/** A place that takes no files gets the text, and a sentence in place of the files. */
async function sendPost(
  post: ChatPost,
  { channel, inPlace, channelSignal, promptLog }: SessionContext,
  { id, body: { prompt } }: Delivery,
): Promise<SendResult> {
  const rank = prompt === undefined ? 'answer' : 'prompt'
  const sendOnce = (once: ChatPost) => inPlace(post.place, rank, () => channel.send(once, channelSignal))
  const result = await sendOnce(post)
  if (result.type !== 'failed' || result.final !== true || post.files === undefined) return result
  const { files, ...bare } = post
  const names = files.map(({ name }) => name).join(', ')
  const note = firstText(
    channel,
    `(Not sent, because this chat does not take files: ${names.slice(0, NAMES_CHARACTERS_MAX)})`,
  )
  const text = [bare.text, note ?? ''].filter((one) => one !== '').join('\n\n')
  if (prompt !== undefined) await promptLog.note(id, NOT_SHOWN)
  const buttons = bare.buttons?.filter(({ style }) => style === 'bad')
  const shown = text.length <= channel.limits.textCharactersMax ? text : bare.text
  const second = await sendOnce({ ...bare, text: shown, buttons })
  return second.type === 'failed' && second.final === true ? result : second
}

/** The reaction tells the truth: the agent is done, but the person has no answer. */
async function showUndelivered({ taskId, channel: place, body }: Delivery, context: SessionContext): Promise<void> {
  if (body.prompt !== undefined || taskId === undefined) return
  const asked = (await context.chatLog.ofTask(taskId)).findLast((message) => message.place === place)
  if (asked !== undefined) context.signs.undelivered(asked)
}

/** A limit or a missing connection says nothing about the message. */
export const isHeldBack = ({ retryAfterMs, isUnsent }: SendResult & { type: 'failed' }): boolean =>
  retryAfterMs !== undefined || isUnsent === true

/** Undefined when the part has arrived. */
async function judge(
  result: SendResult,
  { delivery, part }: OnePart,
  context: SessionContext,
): Promise<DeliveryResult | undefined> {
  const { deliveries, channel } = context
  if (result.type === 'failed') {
    const { error, retryAfterMs, movedTo } = result
    if (movedTo !== undefined) return { type: 'later', error, retryAfterMs: 0 }
    return isHeldBack(result) ? { type: 'later', error, ...(retryAfterMs !== undefined && { retryAfterMs }) } : result
  }
  if (result.type === 'unknown' && (part.triedAgoMs ?? 0) < channel.limits.nonceMs)
    return { type: 'failed', error: result.error, retryAfterMs: RESEND_MS }
  const messageId = result.type === 'sent' ? result.messageId : await findPart(delivery, part, context)
  if (messageId === undefined) return { type: 'unknown', error: result.type === 'unknown' ? result.error : '' }
  // First: a crash between the two leaves a message that may have arrived, and whose buttons can still be removed.
  if (delivery.body.prompt !== undefined) await promptArrived(delivery, messageId, context)
  await deliveries.partSent(delivery.id, part.n, messageId)
  return undefined
}

async function findPart(delivery: Delivery, part: DeliveryPart, context: SessionContext): Promise<string | undefined> {
  const { channel, clock, signal, log } = context
  if (channel.findSent === undefined) return undefined
  const sinceMs = clock.nowMs() - (part.triedAgoMs ?? 0) - 60_000
  try {
    const before = delivery.parts?.findLast(({ receipt }) => receipt !== undefined)?.receipt
    const afterMessageId = before ?? (await context.deliveries.lastReceipt(context.door, delivery.channel))
    return await channel.findSent({ ...(await toPost(delivery, part, context)), sinceMs, afterMessageId }, signal)
  } catch (error) {
    log.debug({ err: toMoleculeError(error) }, 'a message that may have arrived could not be looked for')
    return undefined
  }
}

async function toPost({ id, channel: place, taskId, body }: Delivery, part: DeliveryPart, context: SessionContext) {
  const content = JSON.parse(part.content) as PartContent
  const nonce = createHash('sha256').update(`${id}.${part.n}`).digest('hex').slice(0, 24)
  if ('prompt' in content) return { place, nonce, ...toPromptPost(body, context) }
  const isFirst = part.n === 0 && taskId !== undefined
  // A schedule may report to a chat that its task did not come from.
  const asked = isFirst
    ? (await context.chatLog.ofTask(taskId)).findLast((message) => message.place === place)
    : undefined
  const reply = asked === undefined ? {} : { replyTo: asked.messageId }
  const file = (index: number) => toFile(body.parts?.[index])
  if ('text' in content) {
    const text = content.edits === undefined ? content.text : ''
    return { place, text, nonce, ...reply, ...(content.files && { files: content.files.map(file) }) }
  }
  if ('file' in content) return { place, text: '', nonce, ...reply, files: [file(content.file)] }
  return { place, text: content.note ?? '', nonce, ...reply, files: [wholeAnswer(content.wholeAnswer)] }
}

function toPromptPost({ parts = [], prompt }: DeliveryBody, { channel }: SessionContext) {
  const { buttons, replyTo, file } = prompt as StoredPrompt
  const text = firstText(channel, parts[0]?.text ?? '') ?? ''
  const files = file && [{ name: file.name, mediaType: 'text/plain', content: Buffer.from(file.text) }]
  return { text, buttons, replyTo, ...(files && { files }) }
}

const wholeAnswer = (text: string): ChatPostFile => ({
  name: WHOLE_ANSWER_NAME,
  mediaType: 'text/markdown',
  content: Buffer.from(text),
})

function toFile(part: Part = {}): ChatPostFile {
  const { raw = '', filename = 'file', mediaType } = part
  return { name: filename, content: Buffer.from(raw, 'base64'), ...(mediaType !== undefined && { mediaType }) }
}

/** Pure: it may run again for the same delivery. */
function splitAnswer(body: DeliveryBody, { channel }: SessionContext): string[] {
  if (body.prompt !== undefined) return [JSON.stringify({ prompt: true })]
  const result = toChatResult(body, '')
  const answer = result.error === undefined ? (result.responseText ?? '') : `⚠️ ${result.error}`
  const files = (body.parts ?? []).flatMap(({ raw }, index) =>
    raw === undefined ? [] : [{ index, bytes: Buffer.byteLength(raw, 'base64') }],
  )
  const filled = files.filter(({ bytes }) => bytes > 0)
  const sendable = filled.filter(({ bytes }) => bytes <= channel.limits.uploadBytesMax).slice(0, FILES_MAX)
  const notes = [
    fileNote(filled.length - sendable.length, 'too large or too many for this chat'),
    fileNote(files.length - filled.length, 'empty'),
  ]
  const shown = textContents(answer, notes.join(''), channel)
  const all = withFiles(shown, sendable, channel)
  return (all.length > 0 ? all : [{ text: channel.render('(The agent gave an empty answer.)')[0] ?? '' }]).map(
    (content) => JSON.stringify(content),
  )
}

const fileNote = (count: number, what: string): string =>
  count === 0 ? '' : `\n\n(${count} ${count === 1 ? 'file is' : 'files are'} ${what}.)`

interface SendableFile {
  readonly index: number
  readonly bytes: number
}

/** Files go together, and with the last text where they fit: every message counts towards the limits of the service. */
function withFiles(
  texts: readonly PartContent[],
  files: readonly SendableFile[],
  { limits }: Pick<Channel, 'limits'>,
): PartContent[] {
  const [first, ...groups] = groupsOf(files, limits.uploadBytesMax)
  const last = texts.at(-1)
  if (first === undefined) return [...texts]
  const { captionCharactersMax = limits.textCharactersMax } = limits
  const others = groups.map((group) => ({ text: '', files: group }))
  if (last === undefined || !('text' in last) || last.text.length > captionCharactersMax)
    return [...texts, { text: '', files: first }, ...others]
  return [...texts.slice(0, -1), { ...last, files: first }, ...others]
}

function groupsOf(files: readonly SendableFile[], bytesMax: number): number[][] {
  const groups: number[][] = []
  let bytesLeft = 0
  for (const { index, bytes } of files) {
    const group = groups.at(-1)
    if (group !== undefined && bytes <= bytesLeft) group.push(index)
    else {
      groups.push([index])
      bytesLeft = bytesMax
    }
    bytesLeft -= bytes
  }
  return groups
}

/** The messages of the answer; of a long one the first message, the whole as a file, and the note. */
function textContents(answer: string, note: string, channel: Channel): PartContent[] {
  const markdown = `${answer}${note}`
  const charactersMax = Math.min(TEXT_PARTS_MAX * channel.limits.textCharactersMax, TEXT_CHARACTERS_MAX)
  if (markdown.length <= charactersMax) {
    const contents = channel.render(markdown).map((text) => ({ text }))
    if (contents.length <= TEXT_PARTS_MAX) return contents
  }
  const texts = [firstText(channel, answer), firstText(channel, note)].map((text) =>
    text === undefined ? [] : [{ text }],
  )
  const [first = [], last = []] = texts
  return [...first, { wholeAnswer: answer, note: firstText(channel, WHOLE_ANSWER_NOTE) }, ...last]
}
