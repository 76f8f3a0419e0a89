/** What the routes behind Hono know of a request besides itself: Node's own objects, its id, and who is asking. */
import type { HttpBindings } from '@hono/node-server'
import type { MiddlewareHandler } from 'hono'
import type { Identity } from '../../../workspaces/tokens.ts'
import { type Action, type HttpAuth, requireAccess } from './auth.ts'

export interface HttpEnv {
  readonly Bindings: HttpBindings & { readonly requestId: string }
  readonly Variables: { identity: Identity }
}

/** The guard in front of a route: identified, and allowed to do this. */
export function allow(auth: HttpAuth, action: Action, options?: { counted: boolean }): MiddlewareHandler<HttpEnv> {
  return async (context, next) => {
    const identity = await auth.identify(context.env.incoming, options)
    requireAccess(identity, action)
    context.set('identity', identity)
    await next()
  }
}
