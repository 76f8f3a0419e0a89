/**
 * A small MCP server on stdio for real agents. Its tool `lucky_number` returns a number that only its environment has, so
 * that only an agent that called the tool can know it.
 */
import { McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { z } from 'zod'

serveStdio(() => {
  const server = new McpServer({ name: 'lucky', version: '1.0.0' })
  server.registerTool(
    'lucky_number',
    { description: 'Gives the lucky number of the day.', inputSchema: z.object({ wish: z.string() }) },
    ({ wish }) => ({ content: [{ type: 'text', text: `${process.env['LUCKY_NUMBER']} for ${wish}` }] }),
  )
  return server
})
