/** An MCP server on stdio; with `--old` it supports only the previous revision of the protocol. */
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import { createMcpServer } from './server-tools.ts'

if (process.argv.includes('--old')) await createMcpServer().connect(new StdioServerTransport())
else serveStdio(createMcpServer)
