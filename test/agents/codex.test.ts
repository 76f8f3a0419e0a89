import { agentContract } from './agent-contract.ts'

agentContract('AG-14 codex', {
  cli: 'codex',
  runtime: 'codex',
  oneShot: { mode: 'oneshot' },
  streams: true,
  takesMcpServers: true,
  delegatesIn: ['session', 'oneshot'],
  asks: true,
  capsProcesses: true,
})
