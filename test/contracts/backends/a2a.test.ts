import { after } from 'node:test'
import { a2a } from '../../../src/backends/a2a/a2a.ts'
import { startRemoteAgent } from '../../fakes/remote-agent/start.ts'
import { backendContract } from './backend-contract.ts'

for (const [version, title] of [
  ['1.0', 'a2a'],
  ['0.3', 'a2a-v03'],
  ['rest', 'a2a over REST'],
] as const) {
  const { url, stop } = await startRemoteAgent(version)
  after(() => stop())
  backendContract(`BK-9 BK-4 AG-11 ${title}`, {
    definition: a2a,
    echo: { url },
    streaming: { url },
    endless: { url: `${url}/as/endless` },
    startsProcesses: false,
    failing: { values: { url: `${url}/as/fail` }, code: 'agent_failed', complaint: 'the disk is full' },
    empty: { values: { url }, code: null },
    // The relay has no timeout; the runtime ends a silent turn.
    slow: null,
    flood: { url: `${url}/as/flood` },
    keepsSession: true,
  })
}
