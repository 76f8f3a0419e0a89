/** `molecule gateway`: it has no options of its own; docs/doors/gateway.md lists its variables. */
import type { DefineCommand } from '../../command-context.ts'

export const define: DefineCommand = (command, _openContext, terminal) => {
  command.action(async () => {
    const { gateway } = await import('../../gateway/gateway.ts')
    await gateway({ terminal, verbose: command.optsWithGlobals()['verbose'] === true })
  })
}
