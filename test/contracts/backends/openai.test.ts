import { after } from 'node:test'
import { openai } from '../../../src/backends/openai/openai.ts'
import { startChatEndpoint } from '../../fakes/chat-endpoint.ts'
import { backendContract } from './backend-contract.ts'

const endpoint = await startChatEndpoint()
after(() => endpoint.stop())
const as = (behaviour: string) => ({ url: endpoint.urlFor(behaviour), model: 'fake' })

backendContract('BK-9 BK-4 AG-9 openai', {
  definition: openai,
  echo: as('echo'),
  streaming: as('echo'),
  endless: as('endless'),
  startsProcesses: false,
  failing: { values: as('400'), code: 'bad_config', complaint: 'temperature must be a number' },
  empty: { values: as('echo'), code: 'empty_response' },
  // The runtime ends a silent turn; the backend itself waits as long as the stall timeout.
  slow: null,
  flood: as('flood'),
  keepsSession: false,
})
