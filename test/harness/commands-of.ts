/** The commands of molecule on the machine of a platform: its data folder has the URL and the token. */
import assert from 'node:assert/strict'
import { type RunCommandOptions, runCommand } from './command.ts'
import type { PlatformUnderTest } from './platform.ts'

/** `platform` is called by each command, because a group of tests starts its platform before the first of them. */
export function commandsOf(platform: () => Pick<PlatformUnderTest, 'dataDir'>) {
  const molecule = (args: readonly string[], options: RunCommandOptions = {}) =>
    runCommand(args, { ...options, env: { MOLECULE_HOME: platform().dataDir, ...options.env } })
  /** What the command printed. It must not fail. */
  const succeed = async (...args: string[]) => {
    const { code, out, err } = await molecule(args)
    assert.equal(code, 0, `${args.join(' ')}: ${err}`)
    return out
  }
  return { molecule, succeed, json: async (...args: string[]) => JSON.parse(await succeed(...args, '-o', 'json')) }
}
