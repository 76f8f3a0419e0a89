import { agentContract } from './agent-contract.ts'

agentContract('AG-14 gemini', {
  cli: 'gemini',
  runtime: 'gemini',
  oneShot: { mode: 'oneshot' },
  streams: true,
  takesMcpServers: true,
  delegatesIn: ['session'],
  asks: true,
  capsProcesses: true,
})
