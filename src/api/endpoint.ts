/**
 * What an endpoint is: one value for each method and path of the HTTP API, with the action that the caller's role must
 * allow, its parameters, its body and its answer. The router, the guard, validation and the API document (`doors/http`)
 * derive from it, and the client, the commands and the page take their types from it.
 * Invariant: an endpoint without an access rule or without an answer does not compile.
 */
import type { z } from 'zod'
import type { Action } from './who-may.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** Method and path: `GET /workspaces/{id}/rules`. A parameter `{+path}` may contain slashes; it is the last one. */
export type EndpointName = `${Method} /${string}`

/** The names of the parameters in a path. */
export type PathParameter<Name extends string> = Name extends `${string}{${infer First}}${infer Rest}`
  ? (First extends `+${infer Deep}` ? Deep : First) | PathParameter<Rest>
  : never

export interface ApiEndpoint<Name extends string = string, Access extends Action | 'open' = Action | 'open'> {
  readonly name: Name
  /** The action that the caller's role must allow; `open` needs no token. */
  readonly access: Access
  /**
   * Which workspaces `{id}` may name for the token of an agent, checked before the body is read. `own`: only its own
   * workspace. `reachable`: also those it may talk to. Absent: the role alone decides, or the handler checks.
   */
  readonly reach?: 'own' | 'reachable'
  /** False: the rate limit does not count this endpoint. For workers, whose calls are as many as their turns. */
  readonly counted?: false
  readonly summary: string
  /** The parameters after the `?`, by the type of their value: a text, a whole number or a flag. Others are ignored. */
  readonly query?: z.ZodObject
  readonly body?: EndpointBody<z.ZodType>
  /** The body is the content of a file, which the handler reads by itself. */
  readonly upload?: true
  /** The status of success and its description. */
  readonly success: readonly [status: number, description: string]
  /** The body of a successful answer: a schema of its JSON, or what the handler writes by itself. */
  readonly answer: z.ZodType | RawAnswer
}

/** A JSON body. */
export interface EndpointBody<Schema = z.ZodObject> {
  readonly schema: Schema
  /** What the body describes, for error messages: "a token". */
  readonly name: string
  /** An absent body counts as `{}`. */
  readonly optional?: true
  /** Where absent: 1 MiB, or 4 KiB for an endpoint that needs no token. A larger body is refused with `too_large`. */
  readonly bytesMax?: number
  /** The body may also be an array of up to this many such objects; the handler gets the array. */
  readonly batchMax?: number
  /** Members and items in the whole body; default: `JSON_VALUES_MAX`. */
  readonly valuesMax?: number
}

/** An answer that is not JSON: a file, a text or a stream of this media type, or no body. */
export interface RawAnswer<MediaType extends string | undefined = string | undefined> {
  readonly content: MediaType
}

export const nothing: RawAnswer<undefined> = { content: undefined }
export const contentOf = (mediaType: string): RawAnswer<string> => ({ content: mediaType })

export const isRaw = (answer: z.ZodType | RawAnswer): answer is RawAnswer => 'content' in answer

/** Keeps the exact types of name, query, body and answer, which the handler and the client are typed by. */
export function endpoint<
  const Name extends EndpointName,
  const Access extends Action | 'open',
  Answer extends z.ZodType | RawAnswer,
  Query extends z.ZodObject | undefined = undefined,
  Body extends z.ZodType | undefined = undefined,
  Upload extends true | undefined = undefined,
>(
  name: Name,
  value: EndpointInput<Name, Access, Answer, Query, Body> & { readonly upload?: Upload },
): EndpointOf<Name, Access, Answer, Query, Body, Upload> {
  return { ...value, name } as unknown as EndpointOf<Name, Access, Answer, Query, Body, Upload>
}

type EndpointInput<Name extends string, Access extends Action | 'open', Answer, Query, Body> = Omit<
  ApiEndpoint<Name, Access>,
  'name' | 'reach' | 'query' | 'body' | 'upload' | 'answer'
> & {
  readonly reach?: Name extends `${string}/{id}${string}` ? ApiEndpoint['reach'] : never
  readonly query?: Query
  readonly body?: EndpointBody<Body>
  readonly answer: Answer
}

export type EndpointOf<
  Name extends string,
  Access extends Action | 'open',
  Answer,
  Query,
  Body,
  Upload = true | undefined,
> = Omit<ApiEndpoint<Name, Access>, 'query' | 'body' | 'upload' | 'answer'> & {
  readonly query: Query
  readonly body: Body extends z.ZodType ? EndpointBody<Body> : undefined
  readonly upload: Upload
  readonly answer: Answer
}

/** The value with all its members read-only: a handler may answer with a read-only list, and a caller changes none. */
export type Frozen<Value> = Value extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : Value extends object
    ? { readonly [Key in keyof Value]: Frozen<Value[Key]> }
    : Value
