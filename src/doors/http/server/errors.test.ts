import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { MoleculeError } from '../../../errors.ts'
import { silentLog } from '../../../log.ts'
import { listen } from '../../listen.ts'
import { errorAnswer, logFailure } from './errors.ts'

const LOOPBACK = { host: '127.0.0.1', port: 0, flag: '--port' } as const

test('RE-7 a logged refusal names the path without its query, and a path over 200 characters is cut', async (t) => {
  const paths: unknown[] = []
  const log = { ...silentLog, info: (fields: object) => void paths.push('path' in fields && fields.path) }
  const server = createServer((request, response) => {
    logFailure(log, new MoleculeError('not_found', 'nothing is here'), { request, requestId: 'r' })
    response.end()
  })
  t.after(() => server.close())
  await listen(server, LOOPBACK)
  const { port } = server.address() as AddressInfo
  for (const path of ['/a/path?secret=1', `/${'x'.repeat(199)}`, `/${'x'.repeat(200)}`])
    await (await fetch(`http://127.0.0.1:${port}${path}`)).text()
  assert.deepEqual(paths, ['/a/path', `/${'x'.repeat(199)}`, `/${'x'.repeat(199)}...`])
})

test('a port that another server has is refused with the code in_use', async (t) => {
  const [first, second] = [createServer(), createServer()]
  t.after(() => first.close())
  await listen(first, LOOPBACK)
  const { port } = first.address() as AddressInfo
  await assert.rejects(listen(second, { ...LOOPBACK, port }), { code: 'in_use' })
})

test('only an error that may pass says when to retry: an unavailable store after a second', () => {
  const retryAfter = (error: MoleculeError) => errorAnswer(error, 'req_1').headers?.['Retry-After']
  assert.equal(retryAfter(new MoleculeError('store_unavailable', 'the disk is busy')), '1')
  assert.equal(retryAfter(new MoleculeError('queue_full', 'full', { details: { retryAfterMs: 4200 } })), '5')
  assert.equal(retryAfter(new MoleculeError('not_found', 'nothing is here')), undefined)
})
