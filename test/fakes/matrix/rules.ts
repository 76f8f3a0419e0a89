/** What the fake homeserver refuses of the events that the bot sends. Some of it a real one would pass on to confused clients. */
import { parseMatrixHtml } from './html.ts'
import { badEvent, type Content, MatrixError, type MatrixWorld, type RoomEvent } from './world.ts'

const EVENT_BYTES_MAX = 65_536
/** What a homeserver adds to an event before it counts: hashes, signatures, parents. */
const ADDED_BYTES = 3000
const MESSAGE_TYPES = new Set(['m.text', 'm.notice', 'm.file', 'm.image'])
const RELATIONS = new Set(['m.thread', 'm.replace', 'm.annotation'])

interface SentEvent {
  readonly roomId: string
  readonly type: string
  readonly content: Content
}

export function judgeEvent({ roomId, type, content }: SentEvent, world: MatrixWorld): void {
  if (Buffer.byteLength(JSON.stringify(content)) + ADDED_BYTES > EVENT_BYTES_MAX)
    throw new MatrixError(413, 'M_TOO_LARGE', 'event too large')
  requireIntegers(content)
  judgeRelation({ roomId, type, content }, world)
  if (type === 'm.reaction') judgeReaction({ roomId, type, content }, world)
  else if (type === 'm.room.message') judgeMessage(content, world)
  else throw badEvent(`the bot sends no ${type}`)
  if (content['m.relates_to']?.['rel_type'] === 'm.replace') judgeMessage(content['m.new_content'] ?? {}, world)
}

function judgeMessage(content: Content, world: MatrixWorld): void {
  const { body, msgtype, format, formatted_body: html, url, info } = content
  if (typeof body !== 'string' || !MESSAGE_TYPES.has(msgtype)) throw badEvent('no body or msgtype')
  if (body.trim() === '' || !body.isWellFormed()) throw badEvent('an empty message, or half of a surrogate pair')
  // Without it, clients look for names and @room in the text, and notify people.
  if (JSON.stringify(content['m.mentions']) !== '{}') throw badEvent('m.mentions must be an empty object')
  if ((format === 'org.matrix.custom.html') !== (html !== undefined))
    throw badEvent('a formatted_body needs its format')
  if (html !== undefined) judgeHtml(html)
  if (msgtype !== 'm.file' && msgtype !== 'm.image') return
  const [, id = ''] = /^mxc:\/\/fake\.test\/([\w-]+)$/.exec(url) ?? []
  if (!world.files.has(id)) throw badEvent(`there is no file ${url}`)
  if (typeof info?.mimetype !== 'string') throw badEvent('a file without a mimetype')
}

function judgeHtml(html: string): void {
  try {
    parseMatrixHtml(html)
  } catch (error) {
    throw badEvent((error as Error).message)
  }
}

function judgeRelation({ roomId, content }: SentEvent, world: MatrixWorld): void {
  const relation: Content = content['m.relates_to'] ?? {}
  const { rel_type: type, event_id: eventId, 'm.in_reply_to': reply } = relation
  const isKnown = (id: unknown) => typeof id === 'string' && world.find(roomId, id) !== undefined
  if (reply !== undefined && !isKnown(reply['event_id'])) throw badEvent('a reply to an unknown event')
  if (type === undefined) return
  if (!RELATIONS.has(type)) throw badEvent(`there is no relation ${type}`)
  const target = world.find(roomId, String(eventId))
  if (target === undefined) throw new MatrixError(400, 'M_INVALID_PARAM', "Can't send relation to unknown event")
  const before = target.content['m.relates_to']?.['rel_type']
  if (type === 'm.thread') {
    if (before !== undefined)
      throw new MatrixError(400, 'M_UNKNOWN', 'Cannot start threads from an event with a relation')
    if (typeof relation['is_falling_back'] !== 'boolean' || reply === undefined)
      throw badEvent('a message of a thread says what clients without threads show')
  }
  if (type !== 'm.replace') return
  if (!world.mayEdit) throw new MatrixError(403, 'M_FORBIDDEN', 'The bot may not edit here')
  if (target.sender !== world.bot || before === 'm.replace') throw badEvent('this message cannot be edited')
  if (content['m.new_content'] === undefined) throw badEvent('an edit without a new content')
}

function judgeReaction({ roomId, content }: SentEvent, world: MatrixWorld): void {
  const { rel_type: type, event_id: target, key } = content['m.relates_to'] ?? {}
  if (type !== 'm.annotation' || typeof key !== 'string' || key === '') throw badEvent('a reaction without a key')
  const isSame = ({ sender, content: other }: RoomEvent) =>
    sender === world.bot && other['m.relates_to']?.['event_id'] === target && other['m.relates_to']?.['key'] === key
  if (world.eventsOf(roomId).some((event) => event.type === 'm.reaction' && isSame(event)))
    throw new MatrixError(400, 'M_DUPLICATE_ANNOTATION', "Can't send same reaction twice")
}

/** Events are hashed as canonical JSON, which knows no fractions. */
function requireIntegers(value: unknown): void {
  if (typeof value === 'number' && !Number.isSafeInteger(value)) throw badEvent('a number that is no integer')
  if (typeof value === 'object' && value !== null) for (const one of Object.values(value)) requireIntegers(one)
}
