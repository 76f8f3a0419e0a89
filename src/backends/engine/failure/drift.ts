/**
 * Drift: a program lacks something that its backend needs, because it is newer or older than the tested version. It is
 * detected in the program's output at start or in its answer to a request, and stored in the error's details, where
 * `one-shot-fallback.ts` finds it. Invariant: an error that a provider, a network or a login can cause is never drift.
 */
import { MoleculeError } from '../../../errors.ts'
import { JSON_RPC_CODES } from '../../../protocol/wire-errors.ts'
import { RpcError } from '../json-rpc.ts'

const INVALID_CODES = new Set<number>([JSON_RPC_CODES.invalidRequest, JSON_RPC_CODES.invalidParams])

/** What is missing, e.g. `option --acp missing`; undefined for any other failure. */
export function driftIn(error: unknown): string | undefined {
  const drift = error instanceof MoleculeError ? error.details['drift'] : undefined
  return typeof drift === 'string' ? drift : undefined
}

/** Not retryable: only another version of the program helps. */
export const driftError = (program: string, drift: string, cause?: unknown) =>
  new MoleculeError('agent_failed', `${program} is not compatible: ${drift}`, { cause, details: { drift } })

/** The output by which one program shows that it does not know an argument, if it does not say so plainly. */
export interface DriftPattern {
  readonly says: RegExp
  readonly missing: string
}

const UNKNOWN_WORD =
  /(?:unknown|unrecogni[sz]ed|unexpected|no such) (?:option|argument|flag|command|subcommand)s?\b[:\s]*['"`]?(-*[\w-]+)?/i
const REFUSED_VALUE = /option ['"`]?(--[\w-]{1,60}).{0,80} is invalid|invalid (?:choice|value) .{0,80}(--[\w-]+)/i

/** Finds the argument that a program did not know, in the output of a program that exited at once. */
export function driftInText(text: string, own?: DriftPattern): string | undefined {
  if (own?.says.test(text)) return own.missing
  const refused = REFUSED_VALUE.exec(text)
  if (refused !== null) return `value of ${refused[1] ?? refused[2]} missing`
  const unknown = UNKNOWN_WORD.exec(text)
  if (unknown === null) return undefined
  const [sentence, word = ''] = unknown
  if (word === '') return sentence.trim()
  if (/command/i.test(sentence)) return `command ${word} missing`
  // Some programs name the option without its dashes.
  return `option ${word.startsWith('-') ? word : `--${word}`} missing`
}

/**
 * Finds drift in the error answer to a request: the method is missing, or `initialize` has other parameters. In other
 * requests, refused parameters may come from the owner's settings, so they are not drift.
 */
export function driftInAnswer(method: string, thrown: unknown): string | undefined {
  if (!(thrown instanceof RpcError)) return undefined
  if (thrown.code === JSON_RPC_CODES.methodNotFound) return `method ${method} missing`
  if (!INVALID_CODES.has(thrown.code)) return undefined
  if (/unknown (variant|method)|method not found/i.test(thrown.message)) return `method ${method} missing`
  const isChanged = method === 'initialize' && /unknown field|missing field|invalid type/i.test(thrown.message)
  return isChanged ? 'parameters of initialize changed' : undefined
}
