/**
 * The HTTP API as one list, and the types that its callers work with. `doors/http` serves every endpoint of it, which
 * `doors/http/routes/route.test.ts` compares. Other rooms import only the types of this file: the schemas would double the page.
 */
import type { z } from 'zod'
import { activityEndpoints } from './activity.ts'
import { bridgeEndpoints } from './bridges.ts'
import { browserEndpoints } from './browser.ts'
import { channelEndpoints } from './channels.ts'
import { conversationEndpoints } from './conversations.ts'
import type { Frozen, PathParameter, RawAnswer } from './endpoint.ts'
import { fileEndpoints } from './files.ts'
import { mcpEndpoints } from './mcp.ts'
import { memoryEndpoints } from './memories.ts'
import { needEndpoints } from './needs.ts'
import { platformEndpoints } from './platform.ts'
import { registryEndpoints } from './registry.ts'
import { ruleEndpoints } from './rules.ts'
import { scheduleEndpoints } from './schedules.ts'
import { taskEndpoints } from './tasks.ts'
import { tokenEndpoints } from './tokens.ts'
import { usageEndpoints } from './usage.ts'
import { workspaceEndpoints } from './workspaces.ts'

export const ENDPOINTS = [
  ...activityEndpoints,
  ...bridgeEndpoints,
  ...browserEndpoints,
  ...channelEndpoints,
  ...conversationEndpoints,
  ...fileEndpoints,
  ...mcpEndpoints,
  ...memoryEndpoints,
  ...needEndpoints,
  ...platformEndpoints,
  ...registryEndpoints,
  ...ruleEndpoints,
  ...scheduleEndpoints,
  ...taskEndpoints,
  ...tokenEndpoints,
  ...usageEndpoints,
  ...workspaceEndpoints,
] as const

type Listed = (typeof ENDPOINTS)[number]
type Named<Name extends ApiName> = Extract<Listed, { readonly name: Name }>

/** Method and path of an endpoint: `GET /workspaces/{id}/rules`. */
export type ApiName = Listed['name']

/** Those whose answer is a text, a file or a stream, and no JSON. */
export type RawApiName = Extract<Listed, { readonly answer: RawAnswer<string> }>['name']

/** What a successful call answers: the JSON, or the text of what is not JSON. */
export type ApiAnswer<Name extends ApiName> = Named<Name>['answer'] extends infer Answer
  ? Answer extends z.ZodType
    ? Frozen<z.output<Answer>>
    : Answer extends RawAnswer<string>
      ? string
      : undefined
  : never

/** The body of a call: what is sent as JSON, or the text of a file. */
export type ApiBody<Name extends ApiName> = Named<Name>['body'] extends {
  readonly schema: infer Schema extends z.ZodType
}
  ? Frozen<z.input<Schema>>
  : Named<Name> extends { readonly upload: true }
    ? string
    : undefined

/** The parameters of the path and those after the `?`. */
export type ApiParams<Name extends ApiName> = Readonly<Record<PathParameter<Name>, string>> &
  (Named<Name>['query'] extends z.ZodObject ? Frozen<z.input<Named<Name>['query']>> : unknown)
