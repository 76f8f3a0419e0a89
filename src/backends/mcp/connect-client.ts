/** Connects an MCP client, in the revision that the server speaks. Loads the library at the first call. */
import type { Client, Transport } from '@modelcontextprotocol/client'

/** An old server refuses the version probe at once, or does not answer it; then the old revision is used. */
const PROBE_MS_MAX = 5_000
const CONNECT_MS_MAX = 60_000

export async function connectClient(transport: Transport, signal: AbortSignal): Promise<Client> {
  const { Client: McpClient } = await import('@modelcontextprotocol/client')
  const client = new McpClient(
    { name: 'molecule', version: '1' },
    { versionNegotiation: { mode: 'auto', probe: { timeoutMs: PROBE_MS_MAX } } },
  )
  await client.connect(transport, { signal, timeout: CONNECT_MS_MAX })
  return client
}
