import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import test, { type TestContext } from 'node:test'
import { linuxOnly } from '../../../test/harness/live-processes.ts'
import { isEnding, listeningPidsByLsof, listeningSockets, socketsOf } from './listening-sockets.ts'

async function listen(t: TestContext): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return (server.address() as AddressInfo).port
}

test('a listening socket has its address and user, and the process that holds it is found', linuxOnly, async (t) => {
  const port = await listen(t)
  const [socket, ...others] = listeningSockets(port)
  assert.deepEqual([socket?.address, socket?.uid, others], ['0100007F', process.getuid?.(), []])
  assert.ok(socketsOf(process.pid).has(socket?.inode ?? ''))
  assert.equal(socketsOf(1e9).size, 0)
  assert.deepEqual([isEnding(process.pid), isEnding(1e9)], [false, true])
})

const hasLsof = { skip: !['/usr/bin/lsof', '/usr/sbin/lsof'].some((path) => existsSync(path)) && 'needs lsof' }

test('lsof finds the same process; nothing listens on a closed port', hasLsof, async (t) => {
  assert.deepEqual(await listeningPidsByLsof(await listen(t)), [process.pid])
  assert.deepEqual(await listeningPidsByLsof(1), [])
})
