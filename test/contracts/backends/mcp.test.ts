import { join } from 'node:path'
import { after } from 'node:test'
import { mcp } from '../../../src/backends/mcp/mcp.ts'
import { startMcpServer } from '../../fakes/mcp/http-server.ts'
import { backendContract } from './backend-contract.ts'

const program = join(import.meta.dirname, '..', '..', 'fakes', 'mcp', 'stdio-server.ts')
const command = `exec '${process.execPath}' '${program}'`
const called = (tool: string) => ({ command, tool })

backendContract('BK-9 BK-4 AG-10 mcp, a program', {
  definition: mcp,
  echo: called('echo'),
  // A tool answers once.
  streaming: null,
  endless: called('endless'),
  startsProcesses: true,
  staysWarm: true,
  failing: { values: called('fail'), code: 'agent_failed', complaint: 'the disk is full' },
  empty: { values: called('echo'), code: null },
  slow: { ...called('endless'), max_time: '2s' },
  flood: called('flood'),
  keepsSession: false,
})

const server = await startMcpServer()
after(() => server.stop())
const asked = (tool: string) => ({ url: server.url, tool })

backendContract('BK-9 BK-4 AG-10 mcp, a URL', {
  definition: mcp,
  echo: asked('echo'),
  streaming: null,
  // The server runs elsewhere, so its children are not the platform's.
  endless: asked('wait'),
  startsProcesses: false,
  failing: { values: asked('fail'), code: 'agent_failed', complaint: 'the disk is full' },
  empty: { values: asked('echo'), code: null },
  slow: { ...asked('wait'), max_time: '500ms' },
  flood: asked('flood'),
  keepsSession: false,
})
