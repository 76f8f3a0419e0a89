/** Attacks with wrong tokens on a real platform: they must not lock out callers whose token is valid. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connectSocket } from '../harness/clients/socket-client.ts'
import { type PlatformUnderTest, startPlatform } from '../harness/platform.ts'

const WRONG_TOKENS_PER_MINUTE_MAX = 60

const statusWith = async ({ url }: PlatformUnderTest, token: string): Promise<number> => {
  const response = await fetch(`${url}/workspaces`, { headers: { authorization: `Bearer ${token}` } })
  await response.arrayBuffer()
  return response.status
}

/** Opens a socket as a page of this origin does; the status of the refusal. */
async function openAsPage({ url }: PlatformUnderTest, origin: string, token: string): Promise<number> {
  try {
    const { socket } = await connectSocket(url, { protocols: ['molecule', `molecule.bearer.${token}`], origin })
    socket.terminate()
    return 101
  } catch (error) {
    return Number(/(\d{3})$/.exec((error as Error).message)?.[1])
  }
}

async function newToken(platform: PlatformUnderTest): Promise<{ id: string; token: string }> {
  const { status, body } = await platform.request('POST', '/tokens', { name: 'ci', role: 'viewer' })
  assert.equal(status, 201)
  return body
}

test('PL-9 a foreign web page cannot lock the admin out: its sockets are refused, and wrong tokens refuse only themselves', async () => {
  const platform = await startPlatform()
  try {
    const fresh = await newToken(platform)
    for (const origin of ['https://evil.test', 'http://localhost:1', 'null']) {
      assert.equal(await openAsPage(platform, origin, platform.token), 403, `${origin}, even with a valid token`)
    }
    for (let tries = 0; tries < 2 * WRONG_TOKENS_PER_MINUTE_MAX; tries++) {
      assert.equal(await openAsPage(platform, 'https://evil.test', 'x'), 403)
    }
    assert.equal(await statusWith(platform, 'mol_wrong'), 401, 'refused sockets do not count as wrong tokens')
    for (let tries = 1; tries < WRONG_TOKENS_PER_MINUTE_MAX; tries++) {
      assert.equal(await statusWith(platform, `mol_wrong-${tries}`), 401)
    }
    assert.equal(await statusWith(platform, 'mol_wrong'), 429)
    assert.equal(await openAsPage(platform, platform.url, 'x'), 429)
    assert.equal(await openAsPage(platform, platform.url, platform.token), 101)
    assert.equal(await statusWith(platform, platform.token), 200)
    assert.equal(await statusWith(platform, fresh.token), 200, 'a token that this process has never seen')
  } finally {
    await platform.dispose()
  }
})

test('PL-9 PL-12 a revoked token counts as a wrong token', async () => {
  const platform = await startPlatform()
  try {
    const { id, token } = await newToken(platform)
    assert.equal(await statusWith(platform, token), 200)
    assert.equal((await platform.request('DELETE', `/tokens/${id}`)).status, 204)
    for (let tries = 0; tries < WRONG_TOKENS_PER_MINUTE_MAX; tries++) {
      assert.equal(await statusWith(platform, token), 401)
    }
    assert.equal(await statusWith(platform, token), 429)
    assert.equal(await statusWith(platform, (await newToken(platform)).token), 200)
  } finally {
    await platform.dispose()
  }
})
