/** The tools of the MCP servers that tests talk to, whichever way the server is reached. */
import { spawn } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'

const MEBIBYTE = 1024 * 1024

export function createMcpServer(): McpServer {
  const server = new McpServer({ name: 'lab', version: '1.2.3' })
  const text = (words: string) => ({ content: [{ type: 'text' as const, text: words }] })
  const inputSchema = z.object({ text: z.string() })
  server.registerTool('echo', { inputSchema }, ({ text: words }) => text(words))
  server.registerTool('fail', { inputSchema }, () => ({ ...text('the disk is full'), isError: true }))
  server.registerTool('throw', { inputSchema }, () => {
    throw new Error('it broke')
  })
  server.registerTool('endless', { inputSchema }, () => {
    // In a session of its own: only its mark tells whose it is.
    spawn('sleep', ['300'], { detached: true, stdio: 'ignore' }).unref()
    return new Promise(() => undefined)
  })
  server.registerTool('wait', { inputSchema }, () => new Promise(() => undefined))
  server.registerTool('die', { inputSchema }, () => {
    process.stderr.write('no such luck\n')
    process.exit(3)
  })
  server.registerTool('flood', { inputSchema }, () => text('x'.repeat(11 * MEBIBYTE)))
  server.registerTool('count', { inputSchema }, () => text(`${process.pid} ${++calls}`))
  server.registerTool('kinds', { inputSchema }, () => ({
    content: [
      { type: 'text', text: 'look' },
      { type: 'image', data: 'AAAA', mimeType: 'image/png' },
      { type: 'resource', resource: { uri: 'file:///a/b.txt', text: 'hello', mimeType: 'text/plain' } },
      { type: 'resource', resource: { uri: 'file:///c.bin', blob: 'BBBB' } },
      { type: 'resource_link', uri: 'https://a.test/d', name: 'd' },
    ],
  }))
  server.registerTool(
    'search',
    { inputSchema: z.object({ limit: z.number(), note: z.string().optional(), query: z.string() }) },
    (given) => text(JSON.stringify(given)),
  )
  server.registerTool('number', { inputSchema: z.object({ n: z.number() }) }, () => text('1'))
  server.registerTool('steps', { inputSchema }, async (_, context) => {
    const progressToken = context.mcpReq._meta?.progressToken
    if (progressToken !== undefined) {
      const params = { progressToken, progress: 1, total: 2, message: 'halfway' }
      await context.mcpReq.notify({ method: 'notifications/progress', params })
      // The client forgets who waits for progress with the result, if both come in one breath.
      await delay(50)
    }
    return text('done')
  })
  return server
}

let calls = 0
