import { after } from 'node:test'
import { openclaw } from '../../../src/backends/openclaw/openclaw.ts'
import { createFakeAgents, startFakeGateway } from '../../fakes/agents/fake-program.ts'
import { backendContract } from './backend-contract.ts'

const fake = createFakeAgents()
/** Nothing listens there, so each message starts a process. */
const AWAY = 'http://127.0.0.1:1'
const bin = (scenario: string) => ({ bin: fake('openclaw', scenario), gateway_url: AWAY })

backendContract('BK-9 BK-4 AG-6 openclaw, one process per message', {
  definition: openclaw,
  echo: bin('echo'),
  streaming: null,
  endless: bin('endless'),
  startsProcesses: true,
  failing: { values: bin('crash'), code: 'exit', complaint: 'no such luck' },
  empty: { values: bin('empty'), code: 'empty_response' },
  slow: { ...bin('endless'), max_time: '1s' },
  flood: bin('flood'),
  keepsSession: true,
})

const headers = JSON.stringify({ Authorization: 'Bearer gateway-token' })
async function byGateway(scenario: string) {
  const gateway = await startFakeGateway(fake('openclaw', scenario))
  after(gateway.stop)
  return { bin: '/no/such/program', gateway_url: `http://127.0.0.1:${gateway.port}`, headers }
}

const echo = await byGateway('echo')
const endless = await byGateway('endless')

backendContract('BK-9 BK-4 AG-6 openclaw, through the HTTP endpoint of its gateway', {
  definition: openclaw,
  echo,
  streaming: echo,
  endless,
  startsProcesses: false,
  failing: { values: await byGateway('error-429'), code: 'rate_limited', complaint: 'Rate limit reached' },
  empty: { values: await byGateway('empty'), code: 'empty_response' },
  slow: { ...endless, max_time: '1s' },
  flood: await byGateway('flood'),
  keepsSession: true,
})
