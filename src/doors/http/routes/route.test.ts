import assert from 'node:assert/strict'
import test from 'node:test'
import { ENDPOINTS } from '../../../api/api.ts'
import { endpoint, nothing } from '../../../api/endpoint.ts'
import { ROUTES } from '../app.ts'
import { documentPath } from '../openapi/openapi.ts'
import { isRefusedBeforeBody } from '../server/answer.ts'
import { BODY_BYTES_MAX } from '../server/body.ts'
import { type Route, serve } from './route.ts'

const described = { summary: '', success: [200, ''], answer: nothing } as const

test('PL-12 an endpoint without an access rule or without an answer does not compile', () => {
  // @ts-expect-error: the access rule is missing
  const open = endpoint('GET /example', described)
  assert.equal(open.access, undefined)
  // @ts-expect-error: the answer is missing
  const silent = endpoint('GET /example', { summary: '', success: [200, ''], access: 'open' })
  assert.equal(silent.answer, undefined)
})

test('PL-12 an endpoint with an unknown action does not compile', () => {
  // @ts-expect-error: there is no such action
  assert.ok(endpoint('GET /example', { ...described, access: 'workspace.haunt' }))
})

test('PL-12 the handler of an open endpoint has no identity, one without a body schema no body, and each its own parameters', () => {
  const open = endpoint('GET /example/{one}/{+two}', { ...described, access: 'open' })
  const { path } = serve(open, ({ params, identity, body }) => {
    const none: undefined = identity ?? body
    // @ts-expect-error: the path has no such parameter
    const three: string | undefined = params.three
    assert.fail(`${params.one}${params.two}${three}${none}`)
  })
  assert.equal(path, '/example/:one/:two{.+}')
})

test('PL-10 every endpoint of the contract is served, and nothing else but A2A', () => {
  const nameOf = ({ method, path }: Route) => `${method.toUpperCase()} ${documentPath(path)}`
  const served = ROUTES.filter(({ handle }) => handle !== undefined).map(nameOf)
  const declared = ENDPOINTS.map(({ name }) => name.replace('{+', '{'))
  assert.deepEqual(served.sort(), declared.sort())
})

test('PL-9 no route accepts a body that is refused before it is sent', () => {
  for (const { method, path, handle, body } of ROUTES) {
    if (handle === undefined || body === undefined) continue
    const headers = { expect: '100-continue', 'content-length': String(body.bytesMax ?? BODY_BYTES_MAX) }
    assert.equal(isRefusedBeforeBody({ method: method.toUpperCase(), url: path, headers }), false, `${method} ${path}`)
  }
})
