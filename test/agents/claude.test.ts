import { agentContract } from './agent-contract.ts'

agentContract('AG-14 claude', {
  cli: 'claude',
  runtime: 'claude-code',
  oneShot: { mode: 'oneshot' },
  streams: true,
  takesMcpServers: true,
  delegatesIn: ['session', 'oneshot'],
  asks: true,
  followsSettingsIn: ['session', 'oneshot'],
  reportsCost: true,
  capsProcesses: true,
})
