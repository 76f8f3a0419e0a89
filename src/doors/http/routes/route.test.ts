import assert from 'node:assert/strict'
import test from 'node:test'
import { isRefusedBeforeBody } from '../server/answer.ts'
import { BODY_BYTES_MAX } from '../server/body.ts'
import { ROUTES } from './app.ts'
import { route } from './route.ts'

const described = { method: 'get', path: '/example', summary: '', success: [200, ''] } as const

test('PL-12 a route without an access rule does not compile', () => {
  // @ts-expect-error: the access rule is missing
  const open = route({ ...described, handle: ({ context }) => context.body(null, 204) })
  assert.equal(open.access, undefined)
})

test('PL-12 a route with an unknown action does not compile', () => {
  // @ts-expect-error: there is no such action
  const unknown = route({ ...described, access: 'workspace.haunt', handle: ({ context }) => context.body(null, 204) })
  assert.equal(unknown.handle.length, 1)
})

test('PL-12 the handler of an open route has no identity, and without a body schema it has no body', () => {
  route({
    ...described,
    access: 'open',
    handle({ context, identity, body }) {
      const none: undefined = identity ?? body
      return context.json({ none })
    },
  })
})

test('PL-9 no route accepts a body that is refused before it is sent', () => {
  for (const { method, path, handle, body } of ROUTES) {
    if (handle === undefined || body === undefined) continue
    const headers = { expect: '100-continue', 'content-length': String(body.bytesMax ?? BODY_BYTES_MAX) }
    assert.equal(isRefusedBeforeBody({ method: method.toUpperCase(), url: path, headers }), false, `${method} ${path}`)
  }
})
