/**
 * A kind of channel from the adapters folder: its shape is checked, because it may be JavaScript that no compiler has seen,
 * and its errors are converted: an adapter has no MoleculeError, or another copy of the class.
 * Invariant: `send` and `edit` of such a channel never reject.
 */
import { type ErrorCode, MoleculeError, toMoleculeError } from '../../errors.ts'
import { truncate } from '../../truncate.ts'
import type { Channel, ChannelEvents, ChannelKind } from './channel.ts'

/** Throws an error with the reason for an export that is no kind. */
export function readForeignKind(exported: unknown): ChannelKind {
  if (!isObject(exported)) throw new Error('its channel is not an object')
  const { kind, tokenVariable, tokenSteps, settings, check, open } = exported
  if (typeof kind !== 'string' || !/^[a-z][a-z0-9-]{0,39}$/.test(kind))
    throw new Error('the kind of its channel must be 1 to 40 lower-case letters, digits and -')
  const require = (isRight: boolean, problem: string) => {
    if (!isRight) throw new Error(`the channel "${kind}" ${problem}`)
  }
  require(isVariable(tokenVariable), 'needs tokenVariable: a name such as CHAT_BOT_TOKEN')
  require(isTexts(tokenSteps), 'needs tokenSteps: a list of sentences')
  require(settings === undefined || (Array.isArray(settings) && settings.every(isSetting)), SETTINGS_PROBLEM)
  require(typeof check === 'function', 'needs check: a function')
  require(typeof open === 'function', 'needs open: a function')
  return withOurErrors(exported as unknown as ChannelKind)
}

const SETTINGS_PROBLEM =
  'has a setting that cannot be used: each has name (small letters), variable, summary, isSecret and isRequired'

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null
const isVariable = (value: unknown): boolean => typeof value === 'string' && /^[A-Z][A-Z0-9_]{0,63}$/.test(value)
const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every((text) => typeof text === 'string')

function isSetting(value: unknown): boolean {
  if (!isObject(value)) return false
  const { name, variable, summary, isSecret, isRequired } = value
  const isNamed = typeof name === 'string' && /^[a-z][a-z0-9_]{0,39}$/.test(name) && isVariable(variable)
  return isNamed && typeof summary === 'string' && typeof isSecret === 'boolean' && typeof isRequired === 'boolean'
}

function withOurErrors(kind: ChannelKind): ChannelKind {
  return {
    kind: kind.kind,
    tokenVariable: kind.tokenVariable,
    tokenSteps: kind.tokenSteps,
    settings: kind.settings,
    check: (options, signal) => inOurTerms(async () => kind.check(options, signal)),
    open: async (options) => guardChannel(await inOurTerms(async () => kind.open(options))),
  }
}

/** Every call of the channel as it is, but for its errors. A proxy, so that a member of a later version passes too. */
function guardChannel(channel: Channel): Channel {
  const calls: Pick<Channel, 'connect' | 'send' | 'edit'> = {
    connect: (events, options, signal) =>
      inOurTerms(async () => channel.connect(withOurRefusal(events), options, signal)),
    send: (post, signal) =>
      inOurTerms(async () => channel.send(post, signal)).catch((error) => ({
        type: 'unknown',
        error: shortText(error),
      })),
    edit: (message, signal) =>
      inOurTerms(async () => channel.edit(message, signal)).catch((error) => ({
        type: 'failed',
        error: shortText(error),
      })),
  }
  return new Proxy(channel, {
    get(target, key) {
      if (Object.hasOwn(calls, key)) return calls[key as keyof typeof calls]
      const member: unknown = Reflect.get(target, key)
      if (typeof member !== 'function') return member
      return (...given: unknown[]) => {
        const result: unknown = member.apply(target, given)
        return result instanceof Promise ? inOurTerms(() => result) : result
      }
    },
  })
}

const withOurRefusal = (events: ChannelEvents): ChannelEvents => ({
  ...events,
  refused: (error) => events.refused(toOurError(error)),
})

async function inOurTerms<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw toOurError(error)
  }
}

/** The codes that a channel may give an error. Any other becomes `internal`, whose message only the log shows. */
const CHANNEL_ERROR_CODES: readonly ErrorCode[] = [
  ...(['bad_config', 'provider_unreachable', 'too_large', 'forbidden', 'not_found', 'invalid_request'] as const),
  ...(['unauthenticated', 'canceled'] as const),
]

function toOurError(thrown: unknown): MoleculeError {
  if (thrown instanceof MoleculeError) return thrown
  const { code, message, retryable } = (isObject(thrown) ? thrown : {}) as Partial<MoleculeError>
  const known = CHANNEL_ERROR_CODES.find((one) => one === code)
  if (known === undefined) return toMoleculeError(thrown)
  return new MoleculeError(known, message ?? known, { retryable: retryable === true, cause: thrown })
}

const SENTENCE_CHARACTERS_MAX = 300

const shortText = (error: unknown): string =>
  truncate(error instanceof Error ? error.message : String(error), SENTENCE_CHARACTERS_MAX)
