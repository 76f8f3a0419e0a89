/** A client of the protocol, in whichever revision the server speaks. The library is loaded when it is first needed. */
import type { Client, Transport } from '@modelcontextprotocol/client'

/** An old server that does not know the question says so at once, or says nothing. */
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
