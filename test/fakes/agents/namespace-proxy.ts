/**
 * Stands between codex and the fake model. Codex hands MCP tools over as a `namespace` of tools and wants the
 * namespace back in the call; the fake model knows plain functions only. So on the way in each tool becomes a function
 * called `namespace--tool`, and on the way out such a name is taken apart again. Everything else passes untouched.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

export interface NamespaceProxy {
  readonly url: string
  stop(): Promise<void>
}

const BETWEEN = '--'

export async function startNamespaceProxy(target: string): Promise<NamespaceProxy> {
  const server = createServer((request, response) => {
    // A client that has gone away in the middle of an answer is no news to anybody.
    pass(target, request, response).catch(() => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      server.close()
      server.closeAllConnections()
    },
  }
}

async function pass(target: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  const body = flatten(Buffer.concat(chunks).toString())
  const gone = new AbortController()
  response.on('close', () => gone.abort())
  const answer = await fetch(`${target}${request.url}`, {
    method: request.method ?? 'GET',
    headers: { 'content-type': 'application/json', authorization: request.headers.authorization ?? '' },
    ...(body !== '' && { body }),
    signal: gone.signal,
  })
  response.writeHead(answer.status, Object.fromEntries(answer.headers))
  if (answer.body === null) return void response.end()
  await pipeline(Readable.fromWeb(answer.body), split, response)
}

interface Tool {
  readonly type: string
  readonly name?: string
  readonly tools?: readonly Tool[]
}

interface Item {
  readonly type?: string
  readonly name?: string
  readonly namespace?: string
}

/** The request with every namespace's tools beside the others, and the calls of earlier turns named alike. */
function flatten(text: string): string {
  if (!text.startsWith('{')) return text
  const body = JSON.parse(text) as { tools?: Tool[]; input?: Item[] | string }
  const tools = body.tools?.flatMap(({ type, name, tools: inner }) =>
    type === 'namespace' ? (inner ?? []).map((tool) => ({ ...tool, name: `${name}${BETWEEN}${tool.name}` })) : [],
  )
  const plain = body.tools?.filter(({ type }) => type !== 'namespace')
  const input = Array.isArray(body.input) ? body.input.map(joinName) : body.input
  return JSON.stringify({ ...body, ...(tools && { tools: [...(plain ?? []), ...tools] }), ...(input && { input }) })
}

function joinName(item: Item): Item {
  if (item.namespace === undefined) return item
  const { namespace, ...rest } = item
  return { ...rest, name: `${namespace}${BETWEEN}${item.name}` }
}

/** Event by event: a line of an event stream is never cut in the middle. */
async function* split(chunks: AsyncIterable<Uint8Array>): AsyncIterable<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) yield `${splitNames(line)}\n`
  }
  if (rest !== '') yield splitNames(rest)
}

const splitNames = (line: string): string =>
  line.replaceAll(/"name":"([^"]+?)--([^"]+)"/g, (_, namespace, name) => `"namespace":"${namespace}","name":"${name}"`)
