/**
 * A small MCP server on stdio with one tool, to be handed to a real agent: `lucky_number` answers with a number that
 * is nowhere but in its own environment, so that only an agent which truly called it can say it.
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
