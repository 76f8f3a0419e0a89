/**
 * The Matrix channel. The homeserver keeps what people write, and the channel keeps how far the door has stored it
 * (`matrix-state.ts`). A homeserver takes each transaction once, so a send is repeated without a copy.
 */
import { MoleculeError } from '../../errors.ts'
import { onAbort } from '../../wait.ts'
import type {
  Channel,
  ChannelEvents,
  ChannelLimits,
  ChannelOptions,
  HistoryQuery,
  IncomingMessage,
  SendResult,
} from '../chat/channel.ts'
import { downloadFile } from '../chat/service-calls.ts'
import { createMatrixApi, type MatrixApi, path, requireApiUrl } from './matrix-api.ts'
import { createPace, sendEvent } from './matrix-calls.ts'
import { editContent } from './matrix-content.ts'
import { connectError, matrixOutcome, tokenRefused } from './matrix-errors.ts'
import { findSent, readMissed } from './matrix-history.ts'
import { MATRIX_TEXT_CHARS_MAX, renderMatrix } from './matrix-html.ts'
import { createInvites } from './matrix-invites.ts'
import { countOf, textOf } from './matrix-json.ts'
import { createKnownEvents } from './matrix-known.ts'
import { type MatrixAccount, parseMxc, targetEventOf } from './matrix-messages.ts'
import { createMatrixReactions } from './matrix-reactions.ts'
import { createEventReceiver, type EventReceiver } from './matrix-receive.ts'
import { createRooms, localpart, targetOf } from './matrix-rooms.ts'
import { createSender } from './matrix-send.ts'
import { openMatrixState } from './matrix-state.ts'
import { keepSyncing, readSnapshot } from './matrix-sync.ts'

const MEGABYTE = 1024 * 1024

const LIMITS: ChannelLimits = {
  textCharactersMax: MATRIX_TEXT_CHARS_MAX,
  /** Until the homeserver has told its own limit. */
  uploadBytesMax: 10 * MEGABYTE,
  downloadBytesMax: 25 * MEGABYTE,
  /** Each edit is one more event, and a homeserver with its own defaults takes one in five seconds. */
  editMs: 5000,
  typingMs: 10_000,
  /** Dendrite forgets a transaction after 30 minutes, Synapse after a day. */
  nonceMs: 20 * 60_000,
}

export function createMatrixChannel(options: ChannelOptions): Channel {
  const core = createCore(options)
  const { closing, reactions } = core
  let connection: Connection | undefined
  return {
    get limits() {
      return { ...LIMITS, ...(connection && { uploadBytesMax: connection.uploadBytesMax }) }
    },
    render: renderMatrix,
    send: createSender({ ...core, offer: reactions.offer }),
    edit: (message, signal) => edit(message, core, signal),
    async connect(events, { commands }, signal) {
      onAbort(signal, () => closing.abort())
      connection = await openConnection(events, new Set(commands.map(({ name }) => name)), core)
      return core.me
    },
    async typing(place) {
      const route = path`/client/v3/rooms/${targetOf(place).roomId}/typing/${core.me.id}`
      const body = { typing: true, timeout: LIMITS.typingMs }
      await core.api.call({ method: 'PUT', path: route, body }, closing.signal).catch(() => undefined)
    },
    react: ({ place, messageId }, state) => reactions.show(place, messageId, state).catch(() => undefined),
    async download({ ref }, bytesMax, signal) {
      const address = parseMxc(ref)
      if (address === undefined) throw new MoleculeError('forbidden', 'the file is not on the homeserver')
      const { root, headers } = core.api
      const url = `${root}${path`/client/v1/media/download/${address.server}/${address.id}`}`
      return await downloadFile(url, { bytesMax, service: 'the homeserver', headers }, signal)
    },
    async history(query, signal) {
      return connection?.hasGap === true ? await readHistory(query, { ...core, ...connection }, signal) : []
    },
    findSent: (message, signal) => findSent(message, core, signal),
    async close() {
      closing.abort()
      await connection?.syncing
    },
  }
}

type Core = ReturnType<typeof createCore>

/** What the calls of a channel share. `me` is known once it is connected. */
function createCore({ clock, log, stateFolder, ...options }: ChannelOptions) {
  const api = openApi({ clock, log, ...options })
  const closing = new AbortController()
  const { signal } = closing
  const me: { -readonly [field in keyof MatrixAccount]: string } = { id: '', name: '' }
  const rooms = createRooms(() => me.id)
  const known = createKnownEvents(api, clock, signal)
  const pace = createPace(clock, signal)
  const reactions = createMatrixReactions({ api, known, pace, me: () => me.id, signal })
  return { api, clock, log, stateFolder, closing, me, rooms, known, pace, reactions, signal }
}

interface Connection {
  readonly uploadBytesMax: number
  readonly receiver: EventReceiver
  /** Without a position the homeserver does not give what was missed, so the histories are read. */
  hasGap: boolean
  syncing: Promise<void>
}

async function openConnection(
  events: ChannelEvents,
  commands: ReadonlySet<string>,
  { stateFolder, ...core }: Core,
): Promise<Connection> {
  const { api, clock, log, me, signal } = core
  Object.assign(me, await whoAmI(api, signal))
  const folder = await stateFolder?.()
  const state = await openMatrixState({ folder, userId: me.id, clock, log })
  const problems = createProblems(events)
  const shared = { ...core, state, events, commands }
  const invites = createInvites({ ...shared, me: me.id, problem: problems('invites') })
  const connection: Connection = {
    uploadBytesMax: await readUploadLimit(api, signal),
    receiver: createEventReceiver(shared),
    hasGap: state.since === undefined,
    syncing: Promise.resolve(),
  }
  const reconnected = () => {
    connection.hasGap = true
    events.reconnected()
  }
  const { receiver, hasGap } = connection
  const context = { ...shared, events: { ...events, reconnected }, receiver, invites, problem: problems('sync') }
  const position = await readSnapshot(context, signal).catch((error) => {
    throw connectError(error)
  })
  if (hasGap) await state.setSince(position)
  connection.syncing = keepSyncing(context, signal)
  return connection
}

/** Adds no `unknown`: the same edit may be made again. */
async function edit(
  { place, messageId, text }: { readonly place: string; readonly messageId: string; readonly text: string },
  { api, reactions }: Core,
  signal: AbortSignal,
): Promise<SendResult> {
  const { roomId } = targetOf(place)
  try {
    await sendEvent(api, { roomId, type: 'm.room.message', content: editContent(messageId, text) }, signal)
    void reactions.withdraw(roomId, messageId).catch(() => undefined)
    return { type: 'sent', messageId }
  } catch (error) {
    const outcome = matrixOutcome(error)
    return outcome.type === 'unknown' ? { type: 'failed', error: outcome.error } : outcome
  }
}

async function readHistory(
  query: HistoryQuery,
  { api, rooms, known, receiver }: Pick<Core, 'api' | 'rooms' | 'known'> & Pick<Connection, 'receiver'>,
  signal: AbortSignal,
): Promise<readonly IncomingMessage[]> {
  const { roomId } = targetOf(query.place.id)
  const messages: IncomingMessage[] = []
  for (const event of await readMissed(query, { api, rooms }, signal)) {
    if (messages.length >= query.limit) break
    if (event.type !== 'm.room.message' || targetEventOf(event, 'm.replace') !== undefined) continue
    known.add(roomId, event)
    const message = await receiver.read({ roomId, event, isLive: false })
    if (message?.place.id === query.place.id) messages.push(message)
  }
  return messages
}

export function openApi(options: ChannelOptions): MatrixApi {
  // A token with a line break or a blank cannot be sent at all.
  if (!/^[\x21-\x7e]+$/.test(options.token)) throw tokenRefused()
  return createMatrixApi({ apiUrl: requireApiUrl(options), token: options.token })
}

export async function whoAmI(api: MatrixApi, signal: AbortSignal): Promise<MatrixAccount> {
  try {
    const id = textOf((await api.call({ method: 'GET', path: '/client/v3/account/whoami' }, signal))['user_id'])
    if (id === undefined) throw new MoleculeError('bad_config', 'The homeserver does not say whose token this is.')
    const profile = { method: 'GET', path: path`/client/v3/profile/${id}/displayname` } as const
    const name = textOf((await api.call(profile, signal).catch(() => undefined))?.['displayname'])
    return { id, name: name?.slice(0, 100) ?? localpart(id) }
  } catch (error) {
    throw connectError(error)
  }
}

async function readUploadLimit(api: MatrixApi, signal: AbortSignal): Promise<number> {
  const call = { method: 'GET', path: '/client/v1/media/config' } as const
  const answer = await api.call(call, signal).catch(() => undefined)
  return Math.min(countOf(answer?.['m.upload.size']) ?? LIMITS.uploadBytesMax, 100 * MEGABYTE)
}

/** The list of channels shows one sentence: that of the connection goes before that of an invitation. */
function createProblems(events: ChannelEvents) {
  const sentences: Record<'sync' | 'invites', string | undefined> = { sync: undefined, invites: undefined }
  let shown: string | undefined
  return (kind: keyof typeof sentences) => (sentence: string | undefined) => {
    sentences[kind] = sentence
    const now = sentences.sync ?? sentences.invites
    if (now !== shown) events.problem(now)
    shown = now
  }
}
