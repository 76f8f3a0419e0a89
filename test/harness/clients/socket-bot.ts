/** A bot on the socket channel of a running platform, and the people around it. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Author } from '../../../src/doors/chat/channel.ts'
import { type SocketService, startSocketService } from '../../fakes/socket-service.ts'
import type { PlatformUnderTest } from '../platform.ts'
import { waitUntil } from '../wait.ts'

export const ADA: Author = { id: 'ada', name: 'Ada', isBot: false }
export const BOB: Author = { id: 'bob', name: 'Bob', isBot: false }
export const EVE: Author = { id: 'eve', name: 'Eve', isBot: false }

interface NewBot {
  readonly name: string
  readonly workspaceId: string
  readonly owner: Author
  /** More of the channel. */
  readonly more?: object
}

/** Adds the bot, makes its owner one, and waits until it is connected. */
export async function addSocketBot(t: TestContext, platform: PlatformUnderTest, bot: NewBot): Promise<SocketService> {
  const service = await startSocketService()
  t.after(() => service.close())
  const { name, workspaceId, owner, more } = bot
  const added = await platform.request('POST', '/channels', {
    kind: 'socket',
    name,
    token: service.token,
    api_url: service.apiUrl,
    workspace_id: workspaceId,
    ...more,
  })
  assert.equal(added.status, 201, JSON.stringify(added.body))
  const made = await platform.request('POST', pairingPath(name, owner), { role: 'owner' })
  assert.equal(made.status, 200)
  await waitUntil(() => service.isConnected(), 'the bot is connected')
  return service
}

export const pairingPath = (channel: string, { id }: Author): string =>
  `/pairings/${encodeURIComponent(`${channel}/${id}`)}/approve`
