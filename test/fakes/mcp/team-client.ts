/**
 * An agent that uses the MCP server of its workspace, for `exec` workspaces with `pass_meta`. Its message is JSON: the
 * transport and the calls. It makes the calls one after the other with the token of its turn, and prints all results.
 * `@0.task_id` in an argument is a field of the first result; a call with `until` is repeated until its text has that.
 */
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'

export interface TeamCall {
  readonly tool: string
  readonly arguments?: Readonly<Record<string, unknown>>
  readonly until?: string
}

export interface TeamScript {
  readonly transport?: 'http' | 'stdio'
  readonly calls: readonly TeamCall[]
}

export interface TeamCallResult {
  readonly text: string
  readonly isError: boolean
}

const CALL_MS_MAX = 100_000
const POLL_MS = 100

if (import.meta.main) {
  const script = JSON.parse(await text(process.stdin)) as TeamScript
  const client = await connect(script.transport ?? 'http', process.env)
  const results: TeamCallResult[] = []
  for (const call of script.calls) results.push(await makeCall(client, call, results))
  await client.close()
  process.stdout.write(JSON.stringify(results))
}

/** `isOld`: in the revision of 2025, which most agents use. */
export async function connect(transport: 'http' | 'stdio', env: NodeJS.ProcessEnv, isOld = false): Promise<Client> {
  const options = isOld ? {} : { versionNegotiation: { mode: 'auto' } as const }
  const client = new Client({ name: 'team-client', version: '1' }, options)
  const {
    MOLECULE_API_URL: platform,
    MOLECULE_WORKSPACE_ID: id = '',
    MOLECULE_WORKSPACE_TOKEN: token,
    PATH: path = '',
  } = env
  if (transport === 'stdio') {
    const own = { MOLECULE_API_URL: String(platform), MOLECULE_WORKSPACE_TOKEN: String(token), PATH: path }
    await client.connect(
      new StdioClientTransport({ command: 'molecule', args: ['mcp', '--workspace', id], env: own, stderr: 'inherit' }),
    )
    return client
  }
  const requestInit = { headers: { Authorization: `Bearer ${token}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(`${platform}/workspaces/${id}/mcp`), { requestInit }))
  return client
}

async function makeCall(client: Client, call: TeamCall, before: readonly TeamCallResult[]): Promise<TeamCallResult> {
  for (;;) {
    const result = await callTool(client, { tool: call.tool, arguments: fillIn(call.arguments ?? {}, before) })
    if (call.until === undefined || result.text.includes(call.until)) return result
    await delay(POLL_MS)
  }
}

export async function callTool(
  client: Client,
  { tool: name, arguments: given = {} }: TeamCall,
  onProgress?: (message: string) => void,
): Promise<TeamCallResult> {
  const { content, isError } = await client.callTool(
    { name, arguments: given },
    { timeout: CALL_MS_MAX, ...(onProgress && { onprogress: ({ message }) => onProgress(message ?? '') }) },
  )
  const texts = (content as { text?: string }[]).map((item) => item.text ?? '')
  return { text: texts.join(''), isError: isError === true }
}

function fillIn(given: Readonly<Record<string, unknown>>, before: readonly TeamCallResult[]): Record<string, unknown> {
  const filled = JSON.stringify(given).replaceAll(/@(\d+)\.(\w+)/g, (_, index, field) =>
    String((JSON.parse(before[Number(index)]?.text ?? '{}') as Record<string, unknown>)[field]),
  )
  return JSON.parse(filled) as Record<string, unknown>
}
