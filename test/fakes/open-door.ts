/** A real HTTP door on a loopback socket in front of a desk in memory, closed when the test ends; and ways to knock. */
import { type IncomingHttpHeaders, request } from 'node:http'
import type { TestContext } from 'node:test'
import { systemClock } from '../../src/clock.ts'
import { createHttpDoor, type HttpDoor, type HttpDoorOptions } from '../../src/doors/http/http.ts'
import { createDesk, type Desk, secretOf, WORKSPACE_ID } from './desk.ts'

export interface OpenDoor {
  readonly door: HttpDoor
  readonly desk: Desk
  readonly url: string
  /** The answer to any request, by Node's own client, which leaves every header to the test. */
  knock(path: string, options?: Knock): Promise<Answer>
  /** A JSON-RPC call to the workspace that is always there, by an admin. */
  rpc(method: string, params: unknown, options?: Knock): Promise<Answer>
}

export interface Knock {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer | undefined
  /** By this bearer token; `undefined` = none. */
  readonly token?: string | undefined
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly json: any
}

export async function openDoor(t: TestContext, options: Partial<HttpDoorOptions> = {}): Promise<OpenDoor> {
  const desk = createDesk()
  const { reception, deadLetters, workspaces, tokens, log } = desk
  const door = createHttpDoor({
    ...{ reception, deadLetters, workspaces, tokens, log },
    clock: systemClock,
    host: '127.0.0.1',
    port: 0,
    version: '1.2.3',
    maxBlockMs: 60_000,
    unready: async () => undefined,
    ...options,
  })
  await door.start()
  t.after(() => door.close())
  const { url } = door
  const knock = (path: string, knocking: Knock = {}) => send(url + path, knocking)
  return {
    ...{ door, desk, url, knock },
    rpc: (method, params, knocking = {}) =>
      knock(`/workspaces/${WORKSPACE_ID}/a2a`, {
        method: 'POST',
        token: secretOf('admin'),
        body: JSON.stringify({ jsonrpc: '2.0', id: 7, method, params }),
        ...knocking,
      }),
  }
}

function send(url: string, { method = 'GET', headers = {}, body, token }: Knock): Promise<Answer> {
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` }
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method, headers: { ...authorization, ...headers }, agent: false }, (incoming) => {
      const chunks: Buffer[] = []
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
      incoming.on('error', reject)
      incoming.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        const json = incoming.headers['content-type']?.includes('json') ? JSON.parse(text) : undefined
        resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, text, json })
      })
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

/** Params of a send in 1.0 words. */
export function say(text: string, more: { message?: object; configuration?: object; metadata?: object } = {}): object {
  const { message, ...rest } = more
  return { message: { messageId: `m-${text}`, role: 'ROLE_USER', parts: [{ text }], ...message }, ...rest }
}

/** The same in 0.3 words. */
export function sayV03(text: string, configuration?: object): object {
  const message = { kind: 'message', messageId: `m-${text}`, role: 'user', parts: [{ kind: 'text', text }] }
  return { message, ...(configuration ? { configuration } : {}) }
}
