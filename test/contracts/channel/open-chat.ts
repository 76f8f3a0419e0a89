/** A platform with one channel on a fake chat service, for the channel contract. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { Author, Place } from '../../../src/doors/chat/channel.ts'
import type { Task } from '../../../src/protocol/a2a.ts'
import type { ChatService, Written } from '../../fakes/chat-service.ts'
import { type PlatformUnderTest, startPlatform } from '../../harness/platform.ts'
import { waitUntil } from '../../harness/wait.ts'

export interface ChannelUnderTest {
  /** The kind: `discord`. */
  readonly kind: string
  /** In titles; default: the kind. */
  readonly name?: string
  start(): Promise<ChatService>
  readonly textCharactersMax: number
  /** Further settings of the kind. */
  readonly settings?: Readonly<Record<string, string>>
  /** The service drops a second copy of a message, or tells it apart in its history: a lost answer makes no delivery unknown. */
  readonly dropsCopies: boolean
  /** The service gives the files of an album as messages with one group id. */
  readonly hasAlbums?: boolean
  /** False: a forwarded message does not say who wrote it. */
  readonly namesForwarded?: boolean
  /** The id of a person on the service, where it is not that of `Author`. */
  readonly personId?: (id: string) => string
  /** False: the service does not tell what was forwarded. */
  readonly tellsForwards?: boolean
  /** Messages of an answer with a text and ten files; default: one. */
  readonly messagesOfTenFiles?: number
  /** False: a bot that was away does not learn of new threads. */
  readonly findsThreads?: boolean
  /** False: a bot has no sign that it writes. */
  readonly hasTyping?: boolean
  /** False: a message cannot be a reply to another one; there are only threads. */
  readonly hasReplies?: boolean
}

export const ADA: Author = { id: '1001', name: 'Ada', isBot: false }
export const EVE: Author = { id: '1002', name: 'Eve', isBot: false }
export const BOT: Author = { id: '2002', name: 'other-bot', isBot: true }

export interface ChatOptions {
  /** Of the workspace, by `exec`; default: it answers with "echo" and the text. */
  readonly cmd?: string
  /** More of the workspace, in place of `exec`. */
  readonly workspace?: Readonly<Record<string, unknown>>
  /** More of the channel. */
  readonly channel?: Readonly<Record<string, unknown>> & {
    /** By the ids of `Author`. */
    readonly allowed_people?: readonly string[]
    readonly allowed_bots?: readonly string[]
  }
  readonly env?: Readonly<Record<string, string>>
}

export interface OpenChat {
  readonly service: ChatService
  readonly platform: PlatformUnderTest
  readonly workspaceId: string
  /** What the bot has written, without live messages. */
  texts(place: Place): string[]
  progress(place: Place): Written[]
  /** Waits until the bot has written so many messages; the texts. */
  answers(place: Place, count: number): Promise<string[]>
  tasks(): Promise<Task[]>
  /** Lets a workspace answer in a place. */
  bind(place: Place, workspaceId?: string): Promise<void>
  /** Makes a person an owner of the bot. */
  makeOwner(person: Author): Promise<void>
  /** Starts a platform on the same data, after the last one has ended. */
  start(): Promise<void>
}

/** A live message that is no answer yet, or will not become one. */
const PROGRESS = /^(Working for |(Done|Ended|Waiting) after |Waiting: |Over\.|Goes on below\.)/

export async function openChat(t: TestContext, under: ChannelUnderTest, options: ChatOptions = {}): Promise<OpenChat> {
  const { kind, start, personId = (id) => id } = under
  const { allowed_people: people = [ADA.id], allowed_bots: bots, ...channel } = options.channel ?? {}
  const service = await start()
  const dataDir = await mkdtemp(join(tmpdir(), 'molecule-chat-'))
  let platform = await startPlatform({ dataDir, ...(options.env && { env: options.env }) })
  t.after(async () => {
    await platform.dispose()
    await service.close()
    await rm(dataDir, { recursive: true, force: true })
  })
  const workspaceId = await makeWorkspace(platform, options)
  const { status, body } = await platform.request('POST', '/channels', {
    kind,
    token: service.token,
    api_url: service.apiUrl,
    settings: under.settings,
    workspace_id: workspaceId,
    ...channel,
    allowed_people: people.map(personId),
    ...(bots !== undefined && { allowed_bots: bots.map(personId) }),
  })
  assert.equal(status, 201, JSON.stringify(body))
  const waitForBot = () =>
    waitUntil(
      () => service.isConnected(),
      () => `the bot is connected; ${platform.output().slice(-2000)}`,
    )
  await waitForBot()
  const texts = (place: Place) =>
    service
      .written(place)
      .map(({ text }) => text)
      .filter((text) => !PROGRESS.test(text))
  return {
    service,
    workspaceId,
    texts,
    get platform() {
      return platform
    },
    progress: (place) => service.written(place).filter(({ text }) => PROGRESS.test(text)),
    async answers(place, count) {
      const what = () =>
        `${count} messages; there are ${JSON.stringify(texts(place))}; ${platform.output().slice(-2000)}`
      await waitUntil(() => texts(place).length >= count, what)
      return texts(place)
    },
    tasks: async () => (await platform.rpc(workspaceId, 'ListTasks', {})).body.result.tasks,
    async bind(place, to = workspaceId) {
      const path = `/channels/${kind}/bindings/${encodeURIComponent(place.id)}`
      const bound = await platform.request('PUT', path, { workspace_id: to })
      assert.equal(bound.status, 200, JSON.stringify(bound.body))
    },
    async makeOwner({ id }) {
      const path = `/pairings/${encodeURIComponent(`${kind}/${personId(id)}`)}/approve`
      assert.equal((await platform.request('POST', path, { role: 'owner' })).status, 200)
    },
    async start() {
      platform = await startPlatform({ dataDir })
      await waitForBot()
    },
  }
}

async function makeWorkspace(platform: PlatformUnderTest, { cmd, workspace }: ChatOptions): Promise<string> {
  if (workspace === undefined) return await platform.exec(cmd ?? 'printf "echo "; cat', { name: 'echo' })
  const { status, body } = await platform.request('POST', '/workspaces', { name: 'echo', ...workspace })
  assert.equal(status, 201, JSON.stringify(body))
  return body.id
}
