/** The options of `molecule up`; `up/up.ts` runs it. */
import { flagsOf, helpOf, PLATFORM_SETTINGS, type Setting } from '../../../config/settings.ts'
import type { DefineCommand } from '../../command-context.ts'

export const define: DefineCommand = (command, _openContext, terminal) => {
  for (const setting of PLATFORM_SETTINGS as readonly Setting[]) {
    if (setting.isList) command.option(flagsOf(setting), helpOf(setting), joinLists)
    else command.option(flagsOf(setting), helpOf(setting))
  }
  command.option('--as <what>', 'what the data folder is when it was made elsewhere: copy or move')
  command.action(async (options: UpFlags) => {
    const { up } = await import('../../up/up.ts')
    const verbose = command.optsWithGlobals()['verbose'] === true
    await up({ flags: toFlags(options), verbose, terminal })
  })
}

/** Of a flag that is repeated. */
const joinLists = (value: string, before?: string): string => (before === undefined ? value : `${before},${value}`)

type UpFlags = Readonly<Record<string, string | undefined>>

/** The parser gives `dataDir`; the settings are called `data-dir`. */
function toFlags(options: UpFlags): Record<string, string | undefined> {
  const entries = Object.entries(options)
  return Object.fromEntries(
    entries.map(([key, value]) => [key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`), value]),
  )
}
