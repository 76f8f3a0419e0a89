/**
 * The token and the settings of a new channel: from their variables, from typing at a terminal, the token also from stdin.
 * Never from an argument: other users of the machine can read those.
 */
import type { PlatformClient } from '../../../client/platform-client.ts'
import type { ChannelKind, ChannelSetting, LoggedIn, LogInQuestion } from '../../../doors/chat/channel.ts'
import { MoleculeError } from '../../../errors.ts'
import { withoutControls } from '../../../printable.ts'
import { findBuiltinKind } from '../../channel-kinds.ts'
import type { CommandContext } from '../../command-context.ts'

/** Of a log-in with its questions. */
const LOG_IN_MS_MAX = 15 * 60_000

type AskedKind = Pick<ChannelKind, 'kind' | 'tokenVariable' | 'tokenSteps' | 'settings' | 'logIn'>

/** One of Molecule, else one that the platform has from an adapter: this process does not run the code of adapters. */
export async function readAskedKind(platform: PlatformClient, name: string): Promise<AskedKind> {
  const builtin = await findBuiltinKind(name)
  if (builtin !== undefined) return builtin
  const { settings, ...kind } = await platform.call('GET /channel-kinds/{kind}', { kind: name })
  return {
    kind: kind.kind,
    tokenVariable: kind.token_variable,
    tokenSteps: kind.token_steps,
    settings: settings.map(({ is_secret: isSecret, is_required: isRequired, ...setting }) => ({
      ...setting,
      isSecret,
      isRequired,
    })),
  }
}

/** By a log-in, where the kind has one and a person types; else the token and the settings of the kind. */
export async function readCredentials(
  context: CommandContext,
  kind: AskedKind,
  apiUrl: string | undefined,
): Promise<LoggedIn> {
  const { env, keyboard, err } = context.terminal
  const hasToken = (env[kind.tokenVariable]?.trim() ?? '') !== ''
  if (kind.logIn === undefined || hasToken || keyboard === undefined)
    return {
      token: await readBotToken(context, kind),
      settings: await readKindSettings(context, kind),
      ...(apiUrl !== undefined && { apiUrl }),
    }
  for (const step of kind.tokenSteps) err(`  ${step}\n`)
  const options = { ask: typedAnswer, ...(apiUrl !== undefined && { apiUrl }) }
  return await kind.logIn(options, AbortSignal.timeout(LOG_IN_MS_MAX))
}

async function typedAnswer({ text: message, isSecret }: LogInQuestion): Promise<string> {
  if (isSecret) return await typedSecret(`${message} (it is not shown)`)
  const { isCancel, text } = await import('@clack/prompts')
  const validate = (value: string | undefined) => (value?.trim() ? undefined : 'An answer is needed.')
  const typed = await text({ message, validate })
  if (isCancel(typed)) throw nothingAdded()
  return typed.trim()
}

async function readBotToken(
  { terminal }: CommandContext,
  { kind, tokenVariable, tokenSteps }: AskedKind,
): Promise<string> {
  const given = terminal.env[tokenVariable]?.trim()
  if (given) return given
  if (terminal.keyboard === undefined) {
    const piped = (await terminal.readInput()).trim()
    if (piped !== '') return piped
    throw new MoleculeError(
      'bad_config',
      `${kind} needs the token of a bot: set ${tokenVariable}, or pipe the token into this command`,
    )
  }
  for (const step of tokenSteps) terminal.err(`  ${withoutControls(step)}\n`)
  return await typedSecret(`The token of the ${kind} bot (it is not shown)`)
}

/** Without a terminal the platform names a required one that is missing. */
async function readKindSettings(
  { terminal }: CommandContext,
  { settings = [] }: AskedKind,
): Promise<Record<string, string>> {
  const read: Record<string, string> = {}
  for (const setting of settings) {
    const given = terminal.env[setting.variable]?.trim() || undefined
    const value = given ?? (terminal.keyboard === undefined ? undefined : await typedSetting(setting))
    if (value !== undefined) read[setting.name] = value
  }
  return read
}

async function typedSetting({ name, summary, isSecret, isRequired }: ChannelSetting): Promise<string | undefined> {
  const asked = withoutControls(`${name}: ${summary}`)
  if (isSecret && isRequired) return await typedSecret(`${asked} (it is not shown)`)
  const { isCancel, password, text } = await import('@clack/prompts')
  const typed = await (isSecret ? password : text)({ message: `${asked}${isRequired ? '' : ' (optional)'}` })
  if (isCancel(typed)) throw nothingAdded()
  // An empty line of @clack/prompts is undefined.
  const value = (typed ?? '').trim()
  if (value !== '') return value
  if (isRequired) throw nothingAdded()
  return undefined
}

async function typedSecret(message: string): Promise<string> {
  const { isCancel, password } = await import('@clack/prompts')
  const typed = await password({ message })
  if (isCancel(typed) || (typed ?? '').trim() === '') throw nothingAdded()
  return typed.trim()
}

const nothingAdded = () => new MoleculeError('canceled', 'nothing was added')
