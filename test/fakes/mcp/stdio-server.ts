/** An MCP server on stdio; with `--old` one of the revision before, which knows nothing of the newer. */
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import { createMcpServer } from './server-tools.ts'

if (process.argv.includes('--old')) await createMcpServer().connect(new StdioServerTransport())
else serveStdio(createMcpServer)
