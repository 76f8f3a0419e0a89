/**
 * Files of an answer: each is uploaded to an address of the service, then all of them become one message with the text. Before
 * that last call nothing is shown, so a failure before it surely sent nothing.
 */
import { sleep } from '../../wait.ts'
import type { ChannelOptions, ChatPost, ChatPostFile, SendResult } from '../chat/channel.ts'
import { requireSlackHost, type SlackApi } from './slack-api.ts'
import { slackOutcome } from './slack-errors.ts'
import { blocksOf, readPlaceId } from './slack-messages.ts'

/** The service shares a file some moments after its answer, and only then the message has a time stamp. */
const SHARE_LOOKS_MS = [0, 100, 300, 600, 1500] as const
const UPLOAD_MS_MAX = 3 * 60_000

interface SendFilesContext {
  readonly api: SlackApi
  readonly options: ChannelOptions
}

export async function sendWithFiles(
  { place, text, files = [], buttons = [] }: ChatPost,
  { api, options }: SendFilesContext,
  signal: AbortSignal,
): Promise<SendResult> {
  const { channel, thread_ts } = readPlaceId(place)
  const uploaded: { id: string; title: string }[] = []
  try {
    for (const file of files) uploaded.push(await upload(file, { api, options }, signal))
  } catch (error) {
    const outcome = slackOutcome(error)
    return outcome.type === 'unknown' ? { type: 'failed', error: outcome.error } : outcome
  }
  // Buttons need blocks, and with blocks the service ignores a comment.
  const comment = text === '' ? {} : { initial_comment: text }
  const shown = buttons.length > 0 ? { blocks: blocksOf(text, buttons) } : comment
  const body = { files: uploaded, channel_id: channel, thread_ts, ...shown }
  try {
    await api.call('files.completeUploadExternal', body, signal)
  } catch (error) {
    return slackOutcome(error)
  }
  const [{ id: first } = { id: '' }] = uploaded
  return { type: 'sent', messageId: await sharedAs(first, channel, { api, options, signal }) }
}

async function upload(file: ChatPostFile, { api, options }: SendFilesContext, signal: AbortSignal) {
  const { name, content } = file
  const asked = { filename: name, length: content.length }
  const { upload_url, file_id } = await api.call('files.getUploadURLExternal', asked, signal)
  const url = requireSlackHost(String(upload_url), options)
  const response = await fetch(url, {
    method: 'POST',
    body: new Uint8Array(content),
    redirect: 'error',
    signal: AbortSignal.any([signal, AbortSignal.timeout(UPLOAD_MS_MAX)]),
  })
  await response.body?.cancel()
  if (!response.ok) throw Object.assign(new Error('the upload failed'), { statusCode: response.status })
  return { id: String(file_id), title: name }
}

/** The time stamp of the message with a file; without it the id of the file, which no edit finds. */
async function sharedAs(
  file: string,
  channel: string,
  { api, options, signal }: SendFilesContext & { readonly signal: AbortSignal },
): Promise<string> {
  for (const delayMs of SHARE_LOOKS_MS) {
    await sleep(options.clock, delayMs, signal)
    if (signal.aborted) break
    const answer = await api.call('files.info', { file }, signal).catch(() => undefined)
    const { public: open = {}, private: closed = {} } = answer?.['file']?.shares ?? {}
    const ts = (closed[channel] ?? open[channel])?.[0]?.ts
    if (typeof ts === 'string') return ts
  }
  return file
}
