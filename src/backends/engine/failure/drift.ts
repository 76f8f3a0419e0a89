/**
 * Drift: a program that no longer speaks as its backend expects, because it is newer or older than the one that was
 * tested. It is told from what the program says when it is started or greeted, and kept in the error's details, where
 * `one-shot-fallback.ts` finds it. Invariant: what a provider, a network or a log-in may cause is never called drift.
 */
import { MoleculeError } from '../../../errors.ts'
import { JSON_RPC_CODES } from '../../../protocol/json-rpc.ts'
import { RpcError } from '../json-rpc.ts'

const INVALID_CODES = new Set<number>([JSON_RPC_CODES.invalidRequest, JSON_RPC_CODES.invalidParams])

/** What is missing, in a few words; undefined for every other failure. */
export function driftIn(error: unknown): string | undefined {
  const drift = error instanceof MoleculeError ? error.details['drift'] : undefined
  return typeof drift === 'string' ? drift : undefined
}

/** Asking again changes nothing, until the program is another one. */
export const driftError = (program: string, drift: string, cause?: unknown) =>
  new MoleculeError('agent_failed', `${program} does not speak as expected: ${drift}`, { cause, details: { drift } })

/** How one program tells that it does not know a word of ours, where it does not say so. */
export interface DriftPattern {
  readonly says: RegExp
  readonly missing: string
}

const UNKNOWN_WORD =
  /(?:unknown|unrecogni[sz]ed|unexpected|no such) (?:option|argument|flag|command|subcommand)s?\b[:\s]*['"`]?(-*[\w-]+)?/i
const REFUSED_VALUE = /option ['"`]?(--[\w-]+).{0,80} is invalid|invalid (?:choice|value) .{0,80}(--[\w-]+)/i

/** From the words of a program that left at once: which of ours it does not know. */
export function driftInText(words: string, own?: DriftPattern): string | undefined {
  if (own?.says.test(words)) return own.missing
  const refused = REFUSED_VALUE.exec(words)
  if (refused !== null) return `value of ${refused[1] ?? refused[2]} missing`
  const complaint = UNKNOWN_WORD.exec(words)
  if (complaint === null) return undefined
  const [said, word = ''] = complaint
  if (word === '') return said.trim()
  if (/command/i.test(said)) return `command ${word} missing`
  // Some name it without its dashes.
  return `option ${word.startsWith('-') ? word : `--${word}`} missing`
}

/**
 * From its answer to a request that our protocol has: the method is gone, or the greeting, in which nothing is of the
 * owner's making, wants other parameters. Elsewhere parameters may be refused for what the owner set.
 */
export function driftInAnswer(method: string, thrown: unknown): string | undefined {
  if (!(thrown instanceof RpcError)) return undefined
  if (thrown.code === JSON_RPC_CODES.methodNotFound) return `method ${method} missing`
  if (!INVALID_CODES.has(thrown.code)) return undefined
  if (/unknown (variant|method)|method not found/i.test(thrown.message)) return `method ${method} missing`
  const isOther = method === 'initialize' && /unknown field|missing field|invalid type/i.test(thrown.message)
  return isOther ? 'parameters of initialize changed' : undefined
}
