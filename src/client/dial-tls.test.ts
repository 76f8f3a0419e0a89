import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import type { MoleculeError } from '../errors.ts'
import { dial } from './dial.ts'

/** A key and its own certificate for 127.0.0.1, from 2020 to 2120, for this test alone. */
const KEY = {
  kty: 'EC',
  crv: 'P-256',
  d: 'qagx7ypg2MfwjlaLCy8PV050k34a6svxFf147hq8yk8',
  x: 'YQcViCTt2Up1oXms9TkhT_lvqe8WD486GSKFGsmRwuI',
  y: 'oZATp1axWNeiLffRN2uxUJyFl6GZWELMkc-1yntmcOk',
}
const CERTIFICATE = [
  'MIIBSjCB8qADAgECAgEBMAoGCCqGSM49BAMCMAwxCjAIBgNVBAMMAXQwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBa',
  'MAwxCjAIBgNVBAMMAXQwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARhBxWIJO3ZSnWheaz1OSFP+W+p7xYPjzoZIoUayZHC4qGQ',
  'E6dWsVjXoi330TdrsVCchZehmVhCzJHPtcp7ZnDpo0MwQTAPBgNVHRMBAf8EBTADAQH/MA8GA1UdEQQIMAaHBH8AAAEwHQYDVR0O',
  'BBYEFEGy9dR+vr+wxuIm3PZNt3gjm2ElMAoGCCqGSM49BAMCA0cAMEQCIG0PGEwbxR/DWzhkdHU3WmFfGWgM5dj9aVmfGgMnWdBR',
  'AiB+IN6h7J7Zb5pcO2YokTB6nO7b2ESm85tEjANhoj7W3g==',
].join('\n')

test('over https too, the limit for a connection ends with the handshake, and the answer has its own', async (t) => {
  const cert = `-----BEGIN CERTIFICATE-----\n${CERTIFICATE}\n-----END CERTIFICATE-----\n`
  const key = createPrivateKey({ key: KEY, format: 'jwk' }).export({ type: 'pkcs8', format: 'pem' })
  const before = getCACertificates('default')
  setDefaultCACertificates([cert])
  const server = createServer({ cert, key })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    setDefaultCACertificates(before)
    server.closeAllConnections()
    server.close()
  })
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const url = new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  const request = { url, method: 'GET', headers: {}, body: undefined, headersMs: 60_000, bytesMax: 1000 }
  const asked = once(server, 'request')
  let failed = false
  const failure = dial({ ...request, lookup: () => assert.fail() }, new AbortController().signal).catch(
    (thrown: MoleculeError) => {
      failed = true
      return thrown
    },
  )
  await asked
  t.mock.timers.tick(59_999)
  await new Promise(setImmediate)
  assert.equal(failed, false)
  t.mock.timers.tick(1)
  const { message } = (await failure) as MoleculeError
  assert.equal(message, `${url.origin} did not answer within 60 s`)
})
