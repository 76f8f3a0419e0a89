/** Everything of the HTTP door that is not A2A: the routes put together, and how their errors are answered. */
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { type Context, Hono } from 'hono'
import { MoleculeError, toMoleculeError } from '../../errors.ts'
import type { DeadLetters } from '../../inbox/inbox.ts'
import type { Log } from '../../log.ts'
import type { Tokens } from '../../workspaces/tokens.ts'
import type { Workspaces } from '../../workspaces/workspace.ts'
import { writeAnswer } from './answer.ts'
import type { Auth } from './auth.ts'
import type { HttpEnv } from './context.ts'
import { deadLetterRoutes } from './dead-letters.ts'
import { errorAnswer, logFailure } from './errors.ts'
import { type HealthOptions, healthRoutes } from './health.ts'
import { loginRoutes } from './login.ts'
import { platformRoutes } from './platform.ts'

export interface AppOptions extends HealthOptions {
  readonly deadLetters: DeadLetters
  readonly workspaces: Workspaces
  readonly tokens: Tokens
  readonly auth: Auth
  readonly log: Log
}

export function createApp(options: AppOptions): Hono<HttpEnv> {
  const { workspaces, tokens, auth, log } = options
  const app = new Hono<HttpEnv>()
  app.route('/', healthRoutes(options))
  app.route('/', loginRoutes(tokens, auth))
  app.route('/', platformRoutes(workspaces, auth))
  app.route('/', deadLetterRoutes(options))
  const refuse = (thrown: unknown, context: Context<HttpEnv>) => {
    const { incoming: request, outgoing: response, requestId } = context.env
    const error = toMoleculeError(thrown)
    logFailure(log, error, { request, response, requestId })
    writeAnswer({ request, response, requestId }, errorAnswer(error, requestId))
    return RESPONSE_ALREADY_SENT
  }
  app.notFound((context) => refuse(noRoute(context.req.method, context.req.path), context))
  app.onError(refuse)
  return app
}

function noRoute(method: string, path: string): MoleculeError {
  return new MoleculeError('not_found', `there is nothing at ${method} ${path}`)
}
