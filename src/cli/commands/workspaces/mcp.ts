/**
 * `molecule mcp`: the MCP server of a workspace on stdio, for agents that accept no URL. It forwards each message to the
 * server of the platform and writes the messages of the answer, so both transports have the same tools. Invariant: a
 * request gets an answer, also when the platform breaks off; only a cancelled request gets none.
 */
import { createInterface } from 'node:readline'
import { platformUnreachable } from '../../../client/platform-failure.ts'
import { readSse } from '../../../client/read-sse.ts'
import { systemClock } from '../../../clock.ts'
import { MoleculeError, toMoleculeError } from '../../../errors.ts'
import { isJsonObject, type JsonObject, parseJsonObject } from '../../../protocol/json.ts'
import { sleep } from '../../../wait.ts'
import type { CommandContext, DefineCommand } from '../../command-context.ts'

const PARSE_ERROR = -32_700
const SERVER_ERROR = -32_000
/** How long a call waits for a platform that refuses connections; agents wait for a tool for 60 s or more. */
const REFUSED_MS_MAX = 30_000
const REFUSED_RETRY_MS = 250
const VERSION_META = 'io.modelcontextprotocol/protocolVersion'

export const define: DefineCommand = (command, openContext) => {
  command
    .option('--workspace <workspace>', 'id or name (MOLECULE_WORKSPACE_ID)')
    .action(async ({ workspace }: { workspace?: string }) => await serve(await openContext(), workspace))
}

async function serve({ terminal, access }: CommandContext, named: string | undefined): Promise<void> {
  const workspace = named ?? terminal.env['MOLECULE_WORKSPACE_ID']
  if (!workspace) {
    throw new MoleculeError('invalid_request', 'name a workspace with --workspace (MOLECULE_WORKSPACE_ID is not set)')
  }
  const { url, token } = access()
  const proxy: McpProxy = {
    url: `${url}/workspaces/${encodeURIComponent(workspace)}/mcp`,
    token: async () => (typeof token === 'function' ? await token() : token),
    write: (message) => terminal.out(`${message}\n`),
    open: new Map(),
  }
  for await (const line of createInterface({ input: terminal.input(), crlfDelay: Number.POSITIVE_INFINITY })) {
    if (line.trim() !== '') take(proxy, line)
  }
  // The client has closed its end, so no answer can reach it.
  for (const request of proxy.open.values()) request.abort()
}

interface McpProxy {
  readonly url: string
  readonly token: () => Promise<string | undefined>
  readonly write: (message: string) => void
  /** The requests without an answer, by their id as JSON. */
  readonly open: Map<string, AbortController>
}

function take(proxy: McpProxy, line: string): void {
  const message = parseJsonObject(line)
  if (message === undefined) {
    writeError(proxy, { id: null, code: PARSE_ERROR, message: 'this is not JSON-RPC' })
    return
  }
  if (message['method'] === 'notifications/cancelled') {
    const { requestId } = isJsonObject(message['params']) ? message['params'] : {}
    proxy.open.get(JSON.stringify(requestId))?.abort()
    return
  }
  const stop = new AbortController()
  const { id } = message
  if (id !== undefined) proxy.open.set(JSON.stringify(id), stop)
  void forward(proxy, { message, line }, stop.signal)
    .catch((thrown: unknown) => toMoleculeError(thrown).message)
    .then((problem) => {
      proxy.open.delete(JSON.stringify(id))
      if (problem === undefined || id === undefined || stop.signal.aborted) return
      writeError(proxy, { id, code: SERVER_ERROR, message: problem })
    })
}

interface ReadMessage {
  readonly message: JsonObject
  readonly line: string
}

/** Writes the messages of the answer. Returns why the request has no answer; undefined if it has one. */
async function forward(
  { url, token, write }: McpProxy,
  { message, line }: ReadMessage,
  signal: AbortSignal,
): Promise<string | undefined> {
  const send = async () => {
    const headers = { ...headersOf(message), Authorization: `Bearer ${await token()}` }
    return await fetch(url, { method: 'POST', headers, body: line, signal, redirect: 'error' })
  }
  const response = await whileRefused(send, url, signal)
  if (response.headers.get('content-type')?.startsWith('text/event-stream') !== true) {
    const text = await response.text()
    const answer = parseJsonObject(text)
    if (answer?.['jsonrpc'] === undefined) return response.ok ? undefined : refusalOf(answer, response.status)
    write(JSON.stringify(answer))
    return undefined
  }
  let isAnswered = false
  try {
    for await (const data of readSse(response.body as AsyncIterable<Buffer>)) {
      const sent = parseJsonObject(data)
      if (sent === undefined) continue
      isAnswered ||= 'id' in sent && !('method' in sent)
      write(JSON.stringify(sent))
    }
  } catch (thrown) {
    // A killed platform ends the body with an error whose text ("terminated") tells an agent nothing.
    if (signal.aborted) throw thrown
  }
  return isAnswered ? undefined : 'the platform broke off this call; a task that it delegated goes on'
}

/**
 * A platform that restarts refuses connections for some seconds. The message was not sent, so it is safe to try again;
 * otherwise the agent would see every tool fail.
 */
async function whileRefused(send: () => Promise<Response>, url: string, signal: AbortSignal): Promise<Response> {
  const untilMs = systemClock.monotonicMs() + REFUSED_MS_MAX
  for (;;) {
    try {
      return await send()
    } catch (thrown) {
      const isRefused = (thrown as { cause?: { code?: string } }).cause?.code === 'ECONNREFUSED'
      if (signal.aborted || !isRefused) throw thrown
      if (systemClock.monotonicMs() >= untilMs) throw platformUnreachable(new URL(url).origin, thrown, false)
    }
    await sleep(systemClock, REFUSED_RETRY_MS, signal)
  }
}

/** The newest revision of the protocol repeats parts of a message in headers. */
function headersOf({ method, params }: JsonObject): Record<string, string> {
  const plain = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }
  const { _meta: meta, name } = isJsonObject(params) ? params : {}
  const version = isJsonObject(meta) ? meta[VERSION_META] : undefined
  if (typeof version !== 'string' || typeof method !== 'string') return plain
  const named: Record<string, string> =
    typeof name === 'string' && /^[\x21-\x7e]+$/.test(name) ? { 'Mcp-Name': name } : {}
  return { ...plain, 'Mcp-Protocol-Version': version, 'Mcp-Method': method, ...named }
}

/** The sentence of a refusal of the platform. */
function refusalOf(answer: JsonObject | undefined, status: number): string {
  const error = answer?.['error']
  const message = isJsonObject(error) ? error['message'] : undefined
  return typeof message === 'string' ? message : `the platform answered with the status ${status}`
}

function writeError({ write }: McpProxy, { id, code, message }: { id: unknown; code: number; message: string }): void {
  write(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } }))
}
