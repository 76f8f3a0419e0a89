import { agentContract } from './agent-contract.ts'

agentContract('AG-14 openclaw', {
  cli: 'openclaw',
  runtime: 'openclaw',
  oneShot: null,
  streams: false,
  takesMcpServers: false,
  capsProcesses: false,
})
