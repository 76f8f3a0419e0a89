/** What this platform says of itself to whoever has a token: its version, and the document of its API. */
import { Hono } from 'hono'
import type { HttpAuth } from '../server/auth.ts'
import { allow, type HttpEnv } from '../server/guard.ts'
import { describeApi } from './openapi.ts'
import { ROUTES } from './table.ts'

export interface AboutRouteOptions {
  readonly version: string
  readonly auth: HttpAuth
}

export function aboutRoutes({ version, auth }: AboutRouteOptions): Hono<HttpEnv> {
  const routes = new Hono<HttpEnv>()
  let document: string | undefined
  routes.get('/version', allow(auth, 'platform.read'), (context) =>
    context.json({ name: 'molecule', version, node: process.version, a2a: ['1.0', '0.3'] }),
  )
  routes.get('/openapi.json', allow(auth, 'platform.read'), (context) => {
    document ??= JSON.stringify(describeApi(ROUTES, version))
    return context.body(document, 200, { 'Content-Type': 'application/json' })
  })
  return routes
}
