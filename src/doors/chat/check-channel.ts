/**
 * Checks a bot before it is stored: the settings against those of its kind, then the token and the settings at the service.
 * Invariant: every secret is hidden from the log before it is used, and no error has a value of a setting in it.
 */
import type { Clock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import type { Log } from '../../log.ts'
import type { ChannelCheck, ChannelKind, ChannelOptions, ChannelSetting } from './channel.ts'

export interface CheckChannelContext {
  /** Throws `invalid_request` for an unknown kind. */
  readonly requireKind: (kind: string) => Promise<ChannelKind>
  /** Keeps a secret out of the log. */
  readonly hide: (secret: string) => void
  readonly clock: Clock
  readonly log: Log
}

export interface CheckedChannel extends ChannelCheck {
  /** The given settings that are no secrets, and those that are. */
  readonly plain: Readonly<Record<string, string>>
  readonly secrets: Readonly<Record<string, string>>
}

export type ChannelToCheck = Pick<ChannelOptions, 'token' | 'apiUrl' | 'settings'> & { readonly kind: string }

export async function checkChannel(
  { kind: name, settings = {}, ...given }: ChannelToCheck,
  { requireKind, hide, clock, log }: CheckChannelContext,
  signal: AbortSignal,
): Promise<CheckedChannel> {
  hide(given.token)
  const kind = await requireKind(name)
  const known = kind.settings ?? []
  const select = (isSecret: boolean) =>
    Object.fromEntries(
      known.flatMap((one) => {
        const value = one.isSecret === isSecret && Object.hasOwn(settings, one.name) ? settings[one.name] : undefined
        return value === undefined ? [] : [[one.name, value]]
      }),
    )
  const secrets = select(true)
  for (const secret of Object.values(secrets)) hide(secret)
  requireKnown(name, known, settings)
  const check = await kind.check({ ...given, settings, clock, log }, signal)
  return { ...check, plain: select(false), secrets }
}

function requireKnown(
  kind: string,
  known: readonly ChannelSetting[],
  settings: Readonly<Record<string, string>>,
): void {
  const unknown = Object.keys(settings).find((name) => known.every((one) => one.name !== name))
  const path = 'settings'
  if (unknown !== undefined) {
    const names = known.length === 0 ? 'it has none' : `its settings are ${known.map(({ name }) => name).join(', ')}`
    const text = `a ${kind} channel has no setting ${JSON.stringify(unknown)}; ${names}`
    throw new MoleculeError('invalid_request', text, { details: { path } })
  }
  const missing = known.find(({ name, isRequired }) => isRequired && !Object.hasOwn(settings, name))
  if (missing === undefined) return
  const text = `a ${kind} channel needs the setting "${missing.name}" (${missing.variable}): ${missing.summary}`
  throw new MoleculeError('invalid_request', text, { details: { path } })
}
