/** The tools of the fake MCP servers, over stdio and HTTP. */
import { spawn } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'

const MEBIBYTE = 1024 * 1024

export function createMcpServer(): McpServer {
  const server = new McpServer({ name: 'lab', version: '1.2.3' })
  const textResult = (text: string) => ({ content: [{ type: 'text' as const, text }] })
  const inputSchema = z.object({ text: z.string() })
  server.registerTool('echo', { inputSchema }, ({ text }) => textResult(text))
  server.registerTool('fail', { inputSchema }, () => ({ ...textResult('the disk is full'), isError: true }))
  server.registerTool('throw', { inputSchema }, () => {
    throw new Error('it broke')
  })
  server.registerTool('endless', { inputSchema }, () => {
    // In its own process session: only its mark shows which turn started it.
    spawn('sleep', ['300'], { detached: true, stdio: 'ignore' }).unref()
    return new Promise(() => undefined)
  })
  server.registerTool('wait', { inputSchema }, () => new Promise(() => undefined))
  server.registerTool('die', { inputSchema }, () => {
    process.stderr.write('no such luck\n')
    process.exit(3)
  })
  server.registerTool('flood', { inputSchema }, () => textResult('x'.repeat(11 * MEBIBYTE)))
  server.registerTool('count', { inputSchema }, () => textResult(`${process.pid} ${++calls}`))
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
    (given) => textResult(JSON.stringify(given)),
  )
  server.registerTool('number', { inputSchema: z.object({ n: z.number() }) }, () => textResult('1'))
  server.registerTool('steps', { inputSchema }, async (_, context) => {
    const progressToken = context.mcpReq._meta?.progressToken
    if (progressToken !== undefined) {
      const params = { progressToken, progress: 1, total: 2, message: 'halfway' }
      await context.mcpReq.notify({ method: 'notifications/progress', params })
      // The client drops a progress notification that arrives together with the result.
      await delay(50)
    }
    return textResult('done')
  })
  return server
}

let calls = 0
