import { agentContract } from './agent-contract.ts'

agentContract('AG-14 opencode', {
  cli: 'opencode',
  runtime: 'opencode',
  oneShot: { mode: 'oneshot' },
  streams: true,
  takesMcpServers: true,
  delegatesIn: ['session', 'oneshot'],
  asks: true,
  capsProcesses: true,
  followsSettingsIn: ['session'],
})
