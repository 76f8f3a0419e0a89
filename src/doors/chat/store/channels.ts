/**
 * Chat channels as they are stored: the bots with their tokens, and the workspaces that answer in their chats.
 * Invariant: a token or another secret leaves this file only towards the door that connects with it.
 */
import { MoleculeError } from '../../../errors.ts'
import { type Row, type Statement, type Store, sql, statement, type Transaction } from '../../../store/store.ts'
import { requireExisting } from '../../../workspaces/existing-workspace.ts'

export interface ChannelSettings {
  /** Another address of the service. */
  readonly apiUrl?: string
  /** People who need no pairing, by their ids on the service. */
  readonly allowedPeople?: readonly string[]
  /** Only these groups, channels and threads are answered; direct chats always are. Absent: all. */
  readonly allowedPlaces?: readonly string[]
  /** Bots that are answered; all other bots are ignored. */
  readonly allowedBots?: readonly string[]
  /** Settings of its kind that are no secrets, by their names. */
  readonly ofKind?: Readonly<Record<string, string>>
  /** `molecule gateway` made it: it removes the channel, and takes back what these owners may do, when its environment says so. */
  readonly gateway?: { readonly owners: readonly string[] }
  /** False: an answer is shown when it is complete, and the live message shows the progress only. */
  readonly stream?: boolean
}

export interface NewChannel {
  readonly name: string
  readonly kind: string
  readonly token: string
  /** Further secrets of its kind, by their names. */
  readonly secrets?: Readonly<Record<string, string>>
  readonly account?: { readonly id: string; readonly name: string }
  /** Answers in direct chats, and where the bot is mentioned in a place without a binding. */
  readonly workspaceId?: string
  readonly settings: ChannelSettings
}

export interface StoredChannel extends NewChannel {
  /** Why it does not work at the moment. */
  readonly problem?: string
  readonly createdAtMs: number
}

export interface Binding {
  readonly channel: string
  readonly place: string
  readonly workspaceId: string
}

export interface StoredBinding extends Binding {
  /** Messages from this time on count for it. */
  readonly sinceMs: number
}

/**
 * Principals, senders and doors of the platform begin with these words. A channel of that name would make principals of
 * their form: `token:<place>` is a caller, `ws:<place>` a workspace.
 */
const RESERVED_NAMES: ReadonlySet<string> = new Set([
  ...['admin', 'agent', 'caller', 'conversation', 'member', 'people', 'person', 'program', 'viewer', 'workspace'],
  ...['a2a', 'chat', 'cli', 'clock', 'grpc', 'http', 'https', 'mcp', 'molecule', 'rule', 'schedule', 'session'],
  ...['system', 'task', 'token', 'tokens', 'user', 'webhook', 'webhooks', 'ws'],
])

/**
 * The principal of a chat, or of a person in it. A name has no colon, so the first word is always the name of a channel. A
 * channel with a reserved name can only come from an earlier version: `chat:` before it keeps its principals apart.
 */
export const chatPrincipal = (channel: string, id: string): string =>
  RESERVED_NAMES.has(channel) ? `chat:${channel}:${id}` : `${channel}:${id}`

/** All channels together; more are refused. */
const CHANNELS_MAX = 50
const BINDINGS_MAX = 2000

/**
 * Contract: `claim` gives a channel to one holder at a time, for `holdMs`; the holder claims again before that ends. A
 * holder is `<host>.<id>`: a new process of a host takes over at once, because the one before it is dead.
 */
export interface Channels {
  /** `replace`: a channel of this name is changed, and keeps its bindings and pairings. Else such a name is refused. */
  add(channel: NewChannel, options?: { readonly replace: boolean }): Promise<void>
  list(): Promise<StoredChannel[]>
  /** Throws `not_found`. */
  get(name: string): Promise<StoredChannel>
  /** Also removes what is known about its chats and people. */
  remove(name: string): Promise<void>
  bind(binding: Binding): Promise<void>
  unbind(channel: string, place: string): Promise<void>
  bindings(channel?: string): Promise<StoredBinding[]>
  /** A place has another id: its binding, its conversation and its open messages go with it. */
  move(channel: string, from: string, to: string): Promise<void>
  /** The workspace of a place: its own binding, else that of its parent. */
  boundTo(channel: string, place: { readonly id: string; readonly parentId?: string }): Promise<string | undefined>
  /** The same, else the default of the channel; undefined also for a channel that is gone. */
  answering(channel: string, place: string): Promise<string | undefined>
  claim(name: string, holder: string, holdMs: number): Promise<boolean>
  release(name: string, holder: string): Promise<void>
  setProblem(name: string, problem: string | undefined): Promise<void>
}

export function createChannels(store: Store): Channels {
  return {
    add: (channel, { replace } = { replace: false }) => store.write(() => insertChannel(channel, replace)),
    list: () => store.read(() => listChannels()),
    get: (name) => store.read(() => requireChannel(name)),
    remove: (name) => store.write(() => deleteChannel(name)),
    bind: (binding) => store.write(() => insertBinding(binding)),
    unbind: (channel, place) => store.write(() => deleteBinding(channel, place)),
    move: (channel, from, to) => store.write(() => movePlace(channel, from, to)),
    bindings: (channel) => store.read(() => listBindings(channel)),
    boundTo: (channel, place) => store.read(() => findBound(channel, place)),
    answering: (channel, place) => store.read(() => findAnswering(channel, place)),
    claim: (name, holder, holdMs) => store.write(() => claim(name, holder, holdMs)),
    async release(name, holder) {
      await store.write(() =>
        sql('update channels set holder = null, holder_until = 0 where name = $1 and holder = $2', [name, holder]),
      )
    },
    async setProblem(name, problem) {
      await store.write(() => sql('update channels set problem = $2 where name = $1', [name, problem ?? null]))
    },
  }
}

/** The holder of the channels of a copied data folder: no platform claims them before they are added again. */
const HELD_HOLDER = 'held'
const FOR_EVER_MS = 8_000_000_000_000_000

export const holdChannels = (problem: string): Statement =>
  statement('update channels set holder = $1, holder_until = $2, problem = $3', [HELD_HOLDER, FOR_EVER_MS, problem])

const COLUMNS = 'name, kind, token, secrets, account, workspace_id, settings, problem, created_at'

function* insertChannel(channel: NewChannel, replace: boolean): Transaction<void> {
  const { name, kind, token, secrets, account, workspaceId, settings } = channel
  if (workspaceId !== undefined) yield* requireExisting(workspaceId)
  const rows = yield* sql<SameBotRow>('select name, kind, account, settings from channels')
  const isKnown = rows.some((row) => row.name === name)
  if (isKnown && !replace)
    throw new MoleculeError(
      'unsupported_operation',
      `there is a channel ${name} already: remove it first, or give another name`,
    )
  if (!isKnown && RESERVED_NAMES.has(name))
    throw new MoleculeError('invalid_request', `a channel cannot be called ${name}: give it another name`, {
      details: { path: 'name' },
    })
  const twin = rows.find((row) => isSameBot(row, channel))
  if (twin !== undefined)
    throw new MoleculeError(
      'unsupported_operation',
      `this bot is the channel ${twin.name} already: two channels of one bot would answer each message twice`,
    )
  if (!isKnown && rows.length >= CHANNELS_MAX)
    throw new MoleculeError('unsupported_operation', `there are ${CHANNELS_MAX} channels: remove some first`)
  yield* sql(
    `insert into channels (name, kind, token, account, workspace_id, settings, secrets, created_at)
     values ($1, $2, $3, $4, $5, $6, $7, now_ms())
     on conflict (name) do update set kind = excluded.kind, token = excluded.token, account = excluded.account,
       secrets = excluded.secrets, workspace_id = excluded.workspace_id, settings = excluded.settings, problem = null,
       holder_until = case when channels.holder = '${HELD_HOLDER}' then 0 else channels.holder_until end`,
    [
      ...[name, kind, token, account ? JSON.stringify(account) : null, workspaceId ?? null, JSON.stringify(settings)],
      secrets === undefined || Object.keys(secrets).length === 0 ? null : JSON.stringify(secrets),
    ],
  )
}

interface SameBotRow {
  name: string
  kind: string
  account: string | null
  settings: string
}

/** Under another name. An account is unique on its service; a program behind an address of its own is a service. */
function isSameBot(row: SameBotRow, { name, kind, account, settings }: NewChannel): boolean {
  if (row.name === name || row.kind !== kind || account === undefined || row.account === null) return false
  const apiUrl = (JSON.parse(row.settings) as ChannelSettings).apiUrl ?? ''
  return (JSON.parse(row.account) as { id: string }).id === account.id && apiUrl === (settings.apiUrl ?? '')
}

function* listChannels(): Transaction<StoredChannel[]> {
  return (yield* sql(`select ${COLUMNS} from channels order by name`)).map(toChannel)
}

function* requireChannel(name: string): Transaction<StoredChannel> {
  const [row] = yield* sql(`select ${COLUMNS} from channels where name = $1`, [name])
  if (row === undefined)
    throw new MoleculeError('not_found', `there is no channel ${JSON.stringify(name.slice(0, 100))}`)
  return toChannel(row)
}

const TABLES_OF_CHANNEL = [
  ...['channel_bindings', 'channel_homes', 'pairings', 'held_messages'],
  ...['chat_places', 'chat_messages', 'chat_prompts'],
]

function* deleteChannel(name: string): Transaction<void> {
  yield* requireChannel(name)
  for (const table of TABLES_OF_CHANNEL) yield* sql(`delete from ${table} where channel = $1`, [name])
  yield* sql('delete from channels where name = $1', [name])
}

function* insertBinding({ channel, place, workspaceId }: Binding): Transaction<void> {
  yield* requireChannel(channel)
  yield* requireExisting(workspaceId)
  const [others] = yield* sql<{ bindings: number }>(
    'select count(*) as bindings from channel_bindings where channel <> $1 or place <> $2',
    [channel, place],
  )
  if (Number(others?.bindings) >= BINDINGS_MAX)
    throw new MoleculeError('unsupported_operation', `there are ${BINDINGS_MAX} bindings: remove some first`)
  yield* sql(
    `insert into channel_bindings (channel, place, workspace_id, created_at) values ($1, $2, $3, now_ms())
     on conflict (channel, place) do update set workspace_id = excluded.workspace_id`,
    [channel, place, workspaceId],
  )
}

function* deleteBinding(channel: string, place: string): Transaction<void> {
  const gone = yield* sql('delete from channel_bindings where channel = $1 and place = $2 returning place', [
    channel,
    place,
  ])
  if (gone.length === 0) throw new MoleculeError('not_found', `the place ${place} of ${channel} is not bound`)
}

function* movePlace(channel: string, from: string, to: string): Transaction<void> {
  const ids = [channel, from, to]
  for (const table of ['channel_bindings', 'chat_places']) {
    const known = `select 1 from ${table} other where other.channel = $1 and other.place = $3`
    yield* sql(`update ${table} set place = $3 where channel = $1 and place = $2 and not exists (${known})`, ids)
    yield* sql(`delete from ${table} where channel = $1 and place = $2`, [channel, from])
  }
  for (const table of ['chat_messages', 'channel_homes'])
    yield* sql(`update ${table} set place = $3 where channel = $1 and place = $2`, ids)
  // Those that are sent stay in the old place, with their message; the others are sent to the new one.
  yield* sql(
    `update chat_prompts set place = $3 where channel = $1 and place = $2 and message_id is null and not exists (
       select 1 from chat_prompts o where o.ask_id = chat_prompts.ask_id and o.channel = $1 and o.place = $3
         and o.notice = chat_prompts.notice)`,
    ids,
  )
  const { settings } = yield* requireChannel(channel)
  if (settings.allowedPlaces?.includes(from) !== true) return
  const allowedPlaces = settings.allowedPlaces.map((place) => (place === from ? to : place))
  yield* sql('update channels set settings = $2 where name = $1', [
    channel,
    JSON.stringify({ ...settings, allowedPlaces }),
  ])
}

function* listBindings(channel: string | undefined): Transaction<StoredBinding[]> {
  const rows = yield* sql<{ channel: string; place: string; workspace_id: string; created_at: number }>(
    `select channel, place, workspace_id, created_at from channel_bindings where channel = $1 or $1 = ''
     order by channel, place`,
    [channel ?? ''],
  )
  return rows.map((row) => ({
    channel: row.channel,
    place: row.place,
    workspaceId: row.workspace_id,
    sinceMs: row.created_at,
  }))
}

function* findBound(
  channel: string,
  { id, parentId }: { readonly id: string; readonly parentId?: string },
): Transaction<string | undefined> {
  const rows = yield* sql<{ place: string; workspace_id: string }>(
    'select place, workspace_id from channel_bindings where channel = $1 and place in ($2, $3)',
    [channel, id, parentId ?? id],
  )
  return (rows.find(({ place }) => place === id) ?? rows[0])?.workspace_id
}

function* findAnswering(channel: string, place: string): Transaction<string | undefined> {
  const bound = yield* findBound(channel, { id: place })
  if (bound !== undefined) return bound
  const [row] = yield* sql<{ id: string | null }>('select workspace_id as id from channels where name = $1', [channel])
  return row?.id ?? undefined
}

function* claim(name: string, holder: string, holdMs: number): Transaction<boolean> {
  const hostPart = holder.slice(0, holder.indexOf('.') + 1)
  const held = yield* sql(
    `update channels set holder = $2, holder_until = now_ms() + $3
     where name = $1 and (holder is null or holder_until < now_ms() or substr(holder, 1, $5) = $4) returning name`,
    [name, holder, holdMs, hostPart, hostPart.length],
  )
  return held.length > 0
}

function toChannel(row: Row): StoredChannel {
  const { account, workspace_id: workspaceId, problem, secrets } = row
  return {
    name: String(row['name']),
    kind: String(row['kind']),
    token: String(row['token']),
    ...(typeof secrets === 'string' && { secrets: JSON.parse(secrets) }),
    ...(typeof account === 'string' && { account: JSON.parse(account) }),
    ...(typeof workspaceId === 'string' && { workspaceId }),
    ...(typeof problem === 'string' && { problem }),
    settings: JSON.parse(String(row['settings'])),
    createdAtMs: Number(row['created_at']),
  }
}
