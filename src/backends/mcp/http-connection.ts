/**
 * The connection to an MCP server at a URL: one for all messages of the workspace, opened at the first message and again
 * after a failure. Credentials are read for every request and go only to that URL. An answer above OUTPUT_BYTES_MAX
 * closes the connection.
 */
import type { Client } from '@modelcontextprotocol/client'
import { MoleculeError } from '../../errors.ts'
import type { Endpoint } from '../endpoint.ts'
import { OUTPUT_BYTES_MAX } from '../engine/turn-engine.ts'
import { connectClient } from './connect-client.ts'

export interface McpHttpConnection {
  connect(signal: AbortSignal): Promise<Client>
  /** Set if the connection was closed because an answer was too large. */
  tooLargeError(): MoleculeError | undefined
  /** Closes the connection; the next message opens a new one. */
  reset(): Promise<void>
  close(): Promise<void>
}

export function createMcpHttpConnection({ url, headers }: Endpoint): McpHttpConnection {
  let connected: Promise<Client> | undefined
  let tooLargeError: MoleculeError | undefined
  const reset = async () => {
    const last = connected
    connected = undefined
    tooLargeError = undefined
    await last?.then((client) => client.close()).catch(() => undefined)
  }
  const onTooLarge = () => {
    tooLargeError = tooLarge()
    void connected?.then((client) => client.close()).catch(() => undefined)
  }
  const open = async (signal: AbortSignal): Promise<Client> => {
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client')
    const send = async (to: string | URL, init?: RequestInit): Promise<Response> => {
      const all = new Headers(init?.headers)
      for (const [name, value] of Object.entries(await headers())) all.set(name, value)
      // No redirects: the server must not decide where our credentials go.
      const answer = await fetch(to, { ...init, headers: all, redirect: 'error' })
      return init?.method === 'POST' ? limitBody(answer, onTooLarge) : answer
    }
    return await connectClient(new StreamableHTTPClientTransport(new URL(url), { fetch: send }), signal)
  }
  return {
    connect(signal) {
      connected ??= open(signal).catch((error: unknown) => {
        connected = undefined
        throw error
      })
      return connected
    },
    tooLargeError: () => tooLargeError,
    reset,
    close: reset,
  }
}

function limitBody(answer: Response, onTooLarge: () => void): Response {
  if (answer.body === null) return answer
  let bytes = 0
  const counted = answer.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        bytes += chunk.length
        if (bytes <= OUTPUT_BYTES_MAX) return controller.enqueue(chunk)
        onTooLarge()
        controller.terminate()
      },
    }),
  )
  const { status, statusText, headers } = answer
  return new Response(counted, { status, statusText, headers })
}

const tooLarge = () =>
  new MoleculeError('too_large', `the MCP server answered with more than ${OUTPUT_BYTES_MAX} bytes`, {
    details: { limitBytes: OUTPUT_BYTES_MAX },
  })
