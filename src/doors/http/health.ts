/**
 * Is it alive, does it take work. Open to everybody, because what asks (a supervisor, a load balancer) has no token;
 * so the answers hold nothing but what a port scan would show anyway.
 */
import { Hono } from 'hono'
import type { HttpEnv } from './server/guard.ts'

export interface HealthRouteOptions {
  readonly version: string
  /** Why it takes no work right now, or undefined when it does. */
  readonly unready: () => Promise<string | undefined>
}

export function healthRoutes({ version, unready }: HealthRouteOptions): Hono<HttpEnv> {
  const routes = new Hono<HttpEnv>()
  routes.get('/health', (context) => context.json({ status: 'ok', name: 'molecule', version, pid: process.pid }))
  routes.get('/ready', async (context) => {
    const reason = await unready()
    return reason === undefined ? context.json({ status: 'ready' }) : context.json({ status: 'not_ready', reason }, 503)
  })
  return routes
}
