/**
 * The A2A routes of a workspace as values, for the API document and the tests. They have no handler here: `a2a/a2a.ts`
 * answers them before the router, and checks access for each method.
 */
import { z } from 'zod'
import { sendMessageParamsSchema } from '../../../protocol/schemas.ts'
import { CARD_PATHS } from '../a2a/card-route.ts'
import { A2A_ACTIONS } from '../a2a/methods.ts'
import { REST_ROUTES } from '../a2a/rest.ts'
import type { A2aRoute } from './route.ts'

const A2A_PATH = '/workspaces/:id/a2a'

const REST_BODIES: Readonly<Record<string, z.ZodType>> = {
  SendMessage: sendMessageParamsSchema,
  SendStreamingMessage: sendMessageParamsSchema,
}

export const a2aRoutes: readonly A2aRoute[] = [
  {
    method: 'post',
    path: A2A_PATH,
    access: 'a2a',
    summary: 'A2A JSON-RPC, versions 1.0 and 0.3',
    success: [200, 'A JSON-RPC response'],
  },
  ...restBinding(),
  ...CARD_PATHS.map(
    (path): A2aRoute => ({
      method: 'get',
      path: `${A2A_PATH}${path}`,
      access: 'open',
      summary: 'The agent card',
      success: [200, 'The card'],
    }),
  ),
]

/** The routes of the REST binding whose method is served. */
function restBinding(): A2aRoute[] {
  return REST_ROUTES.flatMap(({ http, template, name, version }): A2aRoute[] => {
    const access = A2A_ACTIONS.get(name)
    if (access === undefined) return []
    const body = http === 'POST' && {
      body: { schema: REST_BODIES[name] ?? z.looseObject({}), optional: true as const },
    }
    return [
      {
        method: http.toLowerCase() as A2aRoute['method'],
        path: `${A2A_PATH}${template.replaceAll(/\{(\w+)\}/g, ':$1')}`,
        access,
        summary: `A2A ${version} REST: ${name}`,
        success: [200, 'The result'],
        a2aMethod: name,
        ...body,
      },
    ]
  })
}
