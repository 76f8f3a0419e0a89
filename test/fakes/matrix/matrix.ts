/** A fake homeserver with one bot account: what people do in its rooms, and what the bot has written there. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Author, Place } from '../../../src/doors/chat/channel.ts'
import { waitUntil } from '../../harness/wait.ts'
import type { ChatService, Said, SaidFile, Written } from '../chat-service.ts'
import { createHomeserver, type MatrixCallSeen, type MatrixFault } from './homeserver.ts'
import { type Content, MatrixWorld, type RoomEvent, SERVER } from './world.ts'

const STATES: Readonly<Record<string, string>> = {
  '👀': 'seen',
  '⏳': 'running',
  '❓': 'waiting',
  '✅': 'done',
  '❌': 'failed',
}
const ADA: Author = { id: '1001', name: 'Ada', isBot: false }
const BOT: Author = { id: '3003', name: 'thread-opener', isBot: true }
/** A bot that syncs is connected; between two syncs it may take this long. */
const SYNC_GAP_MS = 2000
/** As Synapse comes: ten events at once, then one in five seconds. */
const BURST_EVENTS = 10
const SECONDS_PER_EVENT = 5

/** People are known by their whole ids. */
export const userId = (id: string): string => `@${id}:${SERVER}`

export interface FakeMatrix extends ChatService {
  readonly world: MatrixWorld
  readonly calls: readonly MatrixCallSeen[]
  /** The next call that contains this text (`GET client/v3/sync`) fails. */
  fail(call: string, fault: MatrixFault): void
  /** A person invites the bot to a new room. */
  invite(author: Author, options?: { readonly isEncrypted?: boolean }): string
  /** A person reacts to a message. */
  react(reaction: { place: Place; messageId: string; emoji: string; author: Author }): void
}

/** The answers of the bot to single people. */
export const noticesIn = ({ world }: FakeMatrix, roomId: string): RoomEvent[] =>
  world.eventsOf(roomId).filter(({ content }) => content['msgtype'] === 'm.notice')

export async function startMatrix(): Promise<FakeMatrix> {
  const world = new MatrixWorld()
  const calls: MatrixCallSeen[] = []
  const faults: { readonly call: string; readonly fault: MatrixFault }[] = []
  const limits = createLimits()
  const waits = createWaits(world)
  let downloads = Promise.resolve()
  const takeFault = (call: string) => {
    const index = faults.findIndex((one) => call.includes(one.call))
    return index === -1 ? undefined : faults.splice(index, 1)[0]?.fault
  }
  const server = createServer(
    createHomeserver({
      ...{ world, calls, takeFault },
      ...{ limitMs: limits.takeMs, downloads: () => downloads, waitForChange: waits.wait },
    }),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const written = (place: Place) => writtenIn(place, world)
  const say = (said: Said) => addSaid(said, world)
  return {
    ...{ world, calls, written, say },
    apiUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token: world.token,
    newPlace: (kind, parent) => addPlace(kind, parent, world),
    reaction: (place, messageId) => shownState(roomOf(place), messageId, world),
    react: ({ place, messageId, emoji: key, author }) =>
      void addReaction({ roomId: roomOf(place), messageId, key, author }, world),
    async press({ place, messageId, label, author }) {
      const roomId = roomOf(place)
      const choices: Content[] = world.find(roomId, messageId)?.content['dev.molecule.choices'] ?? []
      const key = choices.find((choice) => choice['label'] === label)?.['key'] ?? '👍'
      const answers = () =>
        world
          .eventsOf(roomId)
          .filter(({ content }) => content['msgtype'] === 'm.notice' && replyIn(content) === messageId)
      const before = answers().length
      addReaction({ roomId, messageId, key, author }, world)
      await waitUntil(() => answers().length > before, `an answer to the press of ${label}`)
      return answers()[before]?.content['body'].replace(/^[^:]*: /, '')
    },
    async command({ place, author, name, argument }) {
      const text = `!${name}${argument === undefined ? '' : ` ${argument}`}`
      const id = say({ place, author, text, mentions: !place.isDirect })
      const answer = () =>
        world.eventsOf(roomOf(place)).find(({ sender, content }) => sender === world.bot && replyIn(content) === id)
      await waitUntil(() => answer() !== undefined, `an answer to ${text}`)
      return answer()?.content['body']
    },
    edit({ place, messageId, text }) {
      const { sender, content } = world.find(roomOf(place), messageId) ?? {}
      if (sender === undefined || content === undefined) throw new Error(`no message ${messageId}`)
      const edited = { ...content, body: text, 'm.mentions': {} }
      const relation = { rel_type: 'm.replace', event_id: messageId }
      const change = { ...edited, body: `* ${text}`, 'm.new_content': edited, 'm.relates_to': relation }
      world.add(roomOf(place), { type: 'm.room.message', sender, content: change })
    },
    remove({ place, messageId }) {
      const sender = world.find(roomOf(place), messageId)?.sender ?? ''
      world.redact(roomOf(place), messageId, sender)
    },
    fail: (call, fault) => void faults.push({ call, fault }),
    failNextSend: (fault) => void faults.push({ call: '/send/m.room.message/', fault: FAULTS[fault] }),
    keepLimits: limits.keep,
    refuseEdits() {
      world.mayEdit = false
    },
    refusals: limits.refusals,
    sends: () => calls.filter(({ path, body }) => isSend(path, body)).length,
    denyRights() {
      world.mayUpload = false
    },
    holdDownloads() {
      const held = Promise.withResolvers<void>()
      downloads = held.promise
      return held.resolve
    },
    failNextHistory: () => void faults.push({ call: 'GET client/v3/sync', fault: 'html_502' }),
    invite(author, { isEncrypted = false } = {}) {
      const roomId = world.addRoom({ members: [userId(author.id)], isEncrypted })
      world.setMember(roomId, { user: world.bot, membership: 'invite', sender: userId(author.id) })
      return roomId
    },
    dropConnections: () => server.closeAllConnections(),
    isConnected: waits.isWaiting,
    typings: (place) => world.typings.filter((roomId) => roomId === roomOf(place)).length,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const FAULTS = {
  rate_limited: { status: 429, code: 'M_LIMIT_EXCEEDED', retryAfterMs: 1000 },
  server_error: 'html_502',
  lost_answer: 'lost_answer',
  no_answer: 'no_answer',
  refused: { status: 403, code: 'M_FORBIDDEN' },
} as const satisfies Record<string, MatrixFault>

const isSend = (path: string, body: Content): boolean =>
  path.includes('/send/m.room.message/') && body['m.relates_to']?.['rel_type'] !== 'm.replace'

const roomOf = (place: Place): string => place.id.split('/$')[0] ?? ''

const threadOf = ({ content }: RoomEvent): string | undefined => {
  const { rel_type: type, event_id: root } = content['m.relates_to'] ?? {}
  return type === 'm.thread' ? root : undefined
}

const placeOf = (roomId: string, event: RoomEvent): string => {
  const root = threadOf(event)
  return root === undefined ? roomId : `${roomId}/${root}`
}

const replyIn = (content: Content): string | undefined => content['m.relates_to']?.['m.in_reply_to']?.['event_id']

/** A bucket of events that fills with time, one for the whole bot. */
function createLimits() {
  let eventMs: number | undefined
  let left = BURST_EVENTS
  let atMs = 0
  let refusals = 0
  return {
    keep(secondMs: number) {
      eventMs = secondMs * SECONDS_PER_EVENT
      left = BURST_EVENTS
      atMs = Date.now()
    },
    refusals: () => refusals,
    takeMs(): number {
      if (eventMs === undefined) return 0
      const nowMs = Date.now()
      left = Math.min(BURST_EVENTS, left + (nowMs - atMs) / eventMs)
      atMs = nowMs
      if (left >= 1) {
        left -= 1
        return 0
      }
      refusals += 1
      return Math.ceil((1 - left) * eventMs)
    },
  }
}

/** The sync that waits for a change. */
function createWaits(world: MatrixWorld) {
  const waiting = new Set<() => void>()
  let endedMs = 0
  world.changed = () => {
    for (const end of waiting) end()
  }
  return {
    isWaiting: () => waiting.size > 0 || Date.now() - endedMs < SYNC_GAP_MS,
    wait: (timeoutMs: number, response: import('node:http').ServerResponse) =>
      new Promise<void>((resolve) => {
        const end = () => {
          clearTimeout(timer)
          waiting.delete(end)
          endedMs = response.destroyed ? 0 : Date.now()
          resolve()
        }
        const timer = setTimeout(end, timeoutMs)
        timer.unref()
        response.on('close', end)
        waiting.add(end)
      }),
  }
}

function addPlace(kind: 'direct' | 'group' | 'thread', parent: Place | undefined, world: MatrixWorld): Place {
  if (kind === 'thread' && parent !== undefined) {
    const rootId = addSaid({ place: parent, author: BOT, text: 'A thread begins here.' }, world)
    return { id: `${parent.id}/${rootId}`, parentId: parent.id, isDirect: false, name: parent.name }
  }
  const isDirect = kind === 'direct'
  const members = [world.bot, userId(ADA.id), ...(isDirect ? [] : [userId('1002')])]
  const id = world.addRoom({ isDirect, members, ...(!isDirect && { name: 'Team' }) })
  world.setMember(id, { user: userId(ADA.id), membership: 'join', name: ADA.name })
  return { id, isDirect, name: isDirect ? ADA.name : 'Team' }
}

/** The last of the events: a file is an event of its own. */
function addSaid(said: Said, world: MatrixWorld): string {
  const { place, text, author = ADA, mentions = false, sentAtMs, files = [], twice = false, replyTo } = said
  const roomId = roomOf(place)
  const sender = userId(author.id)
  const { membership, displayname } = world.rooms.get(roomId)?.state.get(`m.room.member ${sender}`)?.content ?? {}
  if (membership !== 'join' || displayname === undefined)
    world.setMember(roomId, { user: sender, membership: 'join', name: author.name })
  const rootId = place.id.includes('/$') ? place.id.slice(roomId.length + 1) : undefined
  const shown = mentions ? `${world.botName}: ${text}` : text
  const [file] = files
  const content = {
    ...(file === undefined
      ? { msgtype: author.isBot ? 'm.notice' : 'm.text', body: shown }
      : fileOf(file, shown, world)),
    'm.mentions': mentions ? { user_ids: [world.bot] } : {},
    ...relationTo(rootId, replyTo),
  }
  const time = sentAtMs === undefined ? {} : { origin_server_ts: sentAtMs }
  const event = world.add(roomId, { type: 'm.room.message', sender, content, ...time })
  if (twice) {
    world.stream.push({ roomId, event })
    world.changed()
  }
  return event.event_id
}

function relationTo(rootId: string | undefined, replyTo: string | undefined): Content {
  const eventId = replyTo ?? rootId
  if (eventId === undefined) return {}
  const thread = rootId && { rel_type: 'm.thread', event_id: rootId, is_falling_back: replyTo === undefined }
  return { 'm.relates_to': { ...thread, 'm.in_reply_to': { event_id: eventId } } }
}

function fileOf(
  { name, content, mediaType = 'application/octet-stream', isVoice = false }: SaidFile,
  caption: string,
  world: MatrixWorld,
): Content {
  const id = `said${world.files.size}`
  world.files.set(id, { name, content })
  const info = { mimetype: mediaType, size: content.length }
  const body = caption === '' ? name : caption
  const type = isVoice ? { msgtype: 'm.audio', 'org.matrix.msc3245.voice': {} } : { msgtype: 'm.file' }
  return { ...type, body, filename: name, url: `mxc://${SERVER}/${id}`, info }
}

/** A person who reacts again takes the former reaction away first: nobody can react twice in the same way. */
function addReaction(
  given: { roomId: string; messageId: string; key: string; author: Author },
  world: MatrixWorld,
): RoomEvent {
  const { roomId, messageId, key, author } = given
  const sender = userId(author.id)
  const relation = { rel_type: 'm.annotation', event_id: messageId, key }
  const isSame = ({ type, sender: of, content }: RoomEvent) =>
    type === 'm.reaction' && of === sender && JSON.stringify(content['m.relates_to']) === JSON.stringify(relation)
  const before = world.eventsOf(roomId).find(isSame)
  if (before !== undefined) world.redact(roomId, before.event_id, sender)
  return world.add(roomId, { type: 'm.reaction', sender, content: { 'm.relates_to': relation } })
}

function shownState(roomId: string, messageId: string, world: MatrixWorld): string | undefined {
  const own = world
    .eventsOf(roomId)
    .filter(({ type, sender }) => type === 'm.reaction' && sender === world.bot)
    .map(({ content }) => content['m.relates_to'] ?? {})
    .filter((relation) => relation['event_id'] === messageId && STATES[relation['key']] !== undefined)
  return STATES[own.at(-1)?.['key']]
}

/** The events of one send are one message: a text and its files. Notices are answers to single people. */
function writtenIn(place: Place, world: MatrixWorld): Written[] {
  const roomId = roomOf(place)
  const events = world.eventsOf(roomId).filter(({ sender, type }) => sender === world.bot && type === 'm.room.message')
  const isNew = ({ content }: RoomEvent) =>
    content['msgtype'] !== undefined &&
    content['msgtype'] !== 'm.notice' &&
    content['m.relates_to']?.['rel_type'] !== 'm.replace'
  const here = events.filter((event) => isNew(event) && placeOf(roomId, event) === place.id)
  const isText = ({ content }: RoomEvent) => content['url'] === undefined
  const texts = new Set(here.filter(isText).map(({ content }) => content['dev.molecule.nonce']))
  return here
    .filter((event) => isText(event) || !texts.has(event.content['dev.molecule.nonce']))
    .map(({ event_id: id, content }) => {
      const edits = events.filter((event) => {
        const relation = event.content['m.relates_to'] ?? {}
        return relation['rel_type'] === 'm.replace' && relation['event_id'] === id
      })
      const parts = here.filter((event) => event.content['dev.molecule.nonce'] === content['dev.molecule.nonce'])
      const choices: Content[] = edits.length > 0 ? [] : (content['dev.molecule.choices'] ?? [])
      return {
        id,
        text: content['url'] === undefined ? (edits.at(-1)?.content['m.new_content'] ?? content)['body'] : '',
        buttons: choices.map((choice) => choice['label']),
        files: (content['url'] === undefined ? parts : [{ content } as RoomEvent]).flatMap(
          (part) => world.files.get(String(part.content['url']).split('/').at(-1) ?? '') ?? [],
        ),
        edits: edits.length,
      }
    })
}
