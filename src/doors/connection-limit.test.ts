import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { openDoor } from '../../test/harness/open-door.ts'
import { waitUntil } from '../../test/harness/wait.ts'

test('PL-31 a connection past the limit of its address gets 429 and a reason, and room again when one closes', async (t) => {
  const { url, sendRequest } = await openDoor(t, { connectionsPerAddressMax: 3 })
  const { hostname, port } = new URL(url)
  const held: Socket[] = []
  t.after(() => held.forEach((socket) => void socket.destroy()))
  for (let count = 0; count < 3; count++) {
    const socket = connect(Number(port), hostname)
    held.push(socket)
    await once(socket, 'connect')
  }
  const refused = await sendRequest('/health')
  assert.deepEqual([refused.status, refused.json.error.code], [429, 'too_many_requests'])
  assert.ok(Number(refused.headers['retry-after']) > 0)
  assert.match(refused.json.error.message, /your address has too many connections open/)
  held[0]?.destroy()
  await waitUntil(async () => (await sendRequest('/health')).status === 200, 'a connection is free again')
})
