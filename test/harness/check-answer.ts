/**
 * Compares the answers that the end-to-end tests get with what the API document says of them, so that the types of the
 * client cannot differ from what the platform sends.
 */
import assert from 'node:assert/strict'
import { isRaw } from '../../src/api/endpoint.ts'
import { ROUTES } from '../../src/doors/http/app.ts'

const described = ROUTES.flatMap(({ method, path, success: [status], answer }) => {
  const pattern = new RegExp(`^${path.replaceAll(/:\w+(?:\{[^}]*\})?/g, '[^/]+')}/?$`)
  return answer === undefined || isRaw(answer) ? [] : [{ method, pattern, status, answer }]
})

export function checkAnswer(method: string, path: string, { status, body }: { status: number; body: unknown }): void {
  const [pathname = ''] = path.split('?')
  const route = described.find((each) => each.method === method.toLowerCase() && each.pattern.test(pathname))
  if (route === undefined || route.status !== status) return
  const { success, error } = route.answer.safeParse(body)
  assert.ok(success, `${method} ${path} differs from the API document: ${error?.message}`)
}
