/**
 * The model that claude takes when none is named, for a conversation that goes back to it. A session keeps the model that
 * it was given, and claude's own word `default` ignores the settings of the user.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isJsonObject, parseJsonObject } from '../../protocol/json.ts'

const VARIABLE = 'ANTHROPIC_MODEL'
/** A larger file is no settings file; claude is then told `default`. */
const SETTINGS_CHARACTERS_MAX = 1024 * 1024

/** Undefined: claude finds it by itself, because a variable or an argument of the owner names it. */
export async function findDefaultModel(
  workingDir: string,
  environment: Readonly<Record<string, string>>,
  args: readonly string[],
): Promise<string | undefined> {
  if (environment[VARIABLE] || args.some((word) => /^--(model|settings)(=|$)/.test(word))) return undefined
  const own = environment['CLAUDE_CONFIG_DIR'] || join(environment['HOME'] ?? '/', '.claude')
  const project = join(workingDir, '.claude')
  // claude's own order.
  const files = [join(project, 'settings.local.json'), join(project, 'settings.json'), join(own, 'settings.json')]
  for (const file of files) {
    const model = modelIn(await readFile(file, 'utf8').catch(() => ''))
    if (model !== undefined) return model
  }
  return 'default'
}

function modelIn(text: string): string | undefined {
  const settings = text.length > SETTINGS_CHARACTERS_MAX ? undefined : parseJsonObject(text)
  if (settings === undefined) return undefined
  const { env, model } = settings
  const named = (isJsonObject(env) ? env[VARIABLE] : undefined) ?? model
  // A word that looks like an option of claude would be taken for one.
  return typeof named === 'string' && /^[^\s-]/.test(named) ? named : undefined
}
