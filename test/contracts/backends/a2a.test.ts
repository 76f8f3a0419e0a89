import { after } from 'node:test'
import { a2a } from '../../../src/backends/a2a/a2a.ts'
import { startRemoteAgent } from '../../fakes/remote-agent/start.ts'
import { backendContract } from './backend-contract.ts'

const agent = await startRemoteAgent('1.0')
after(() => agent.stop())

backendContract('BK-9 BK-4 AG-11 a2a', {
  definition: a2a,
  echo: { url: agent.url },
  streaming: { url: agent.url },
  endless: { url: `${agent.url}/as/endless` },
  startsProcesses: false,
  failing: { values: { url: `${agent.url}/as/fail` }, code: 'agent_failed', complaint: 'the disk is full' },
  empty: { values: { url: agent.url }, code: null },
  // The relay has no timeout; the runtime ends a silent turn.
  slow: null,
  flood: { url: `${agent.url}/as/flood` },
  keepsSession: true,
})
