import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import test from 'node:test'
import { linuxOnly } from '../../../test/harness/live-processes.ts'
import { findPortHolder } from './port-holder.ts'

for (const host of ['127.0.0.1', '::1']) {
  test(`PL-13 finds the pid and command of the process that holds a port on ${host}`, linuxOnly, async (t) => {
    const server = createServer()
    server.listen(0, host)
    const failed = once(server, 'error').then(([error]) => error as NodeJS.ErrnoException)
    const problem = await Promise.race([once(server, 'listening').then(() => undefined), failed])
    if (problem) return t.diagnostic(`no ${host} on this machine: ${problem.code}`)
    t.after(() => server.close())
    const holder = findPortHolder((server.address() as AddressInfo).port)
    assert.equal(holder?.pid, process.pid)
    assert.match(holder?.command ?? '', /node/)
  })
}

test('a free port has no holder', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  assert.equal(findPortHolder(port), undefined)
})
