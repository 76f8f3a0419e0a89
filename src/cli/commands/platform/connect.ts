/** The options of `molecule connect`; `bridge/connect.ts` runs it. */
import { InvalidArgumentError } from 'commander'
import { builtinBackends, createBackendRegistry } from '../../../backends/backends.ts'
import { CONNECT_SETTINGS, flagsOf, helpOf, type Setting } from '../../../config/settings.ts'
import type { ConnectFlags } from '../../bridge/connect.ts'
import type { DefineCommand } from '../../command-context.ts'

export const define: DefineCommand = (command, _openContext, terminal) => {
  command.argument('<workspace>', 'id or name of a workspace created with the runtime external')
  for (const setting of CONNECT_SETTINGS.map(withBackendNames)) {
    if (setting.key === 'backend-opt') command.option(flagsOf(setting), helpOf(setting), collectPairs)
    else command.option(flagsOf(setting), helpOf(setting))
  }
  command.action(async (workspaceId: string) => {
    const { connect } = await import('../../bridge/connect.ts')
    const flags = command.optsWithGlobals<ConnectFlags & { readonly verbose?: boolean }>()
    const usage = (problem: string) => command.error(`error: ${problem}`)
    await connect({ workspaceId, flags, verbose: flags.verbose === true, terminal, usage })
  })
}

function withBackendNames(setting: Setting): Setting {
  if (setting.key !== 'backend') return setting
  return {
    ...setting,
    text: `${setting.text}: ${createBackendRegistry(builtinBackends).names().join(', ')}`,
  }
}

function collectPairs(pair: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const at = pair.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('It must be KEY=VALUE, as in cmd="cat".')
  return { ...before, [pair.slice(0, at)]: pair.slice(at + 1) }
}
