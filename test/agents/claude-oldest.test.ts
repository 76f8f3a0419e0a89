import { agentContract } from './agent-contract.ts'

agentContract('AG-14 RT-18 claude, the oldest version', {
  cli: 'claude',
  version: 'oldest',
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
