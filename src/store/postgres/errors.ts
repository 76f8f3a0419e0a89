/**
 * PostgreSQL's failures in our words: what says something of the machine, what is worth another try, and what is a
 * defect of ours. No sentence made here carries anything of the database's URL but host and port.
 */
import { MoleculeError } from '../../errors.ts'

/** Codes of the server (SQLSTATE) and of the network that say something of the machine and not of the statement. */
const MACHINE_REASONS: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'it refuses connections'],
  ['ECONNRESET', 'the connection broke off'],
  ['EPIPE', 'the connection broke off'],
  ['ENOTFOUND', 'its host name is not known'],
  ['EAI_AGAIN', 'its host name cannot be looked up'],
  ['EHOSTUNREACH', 'its host cannot be reached'],
  ['ENETUNREACH', 'its network cannot be reached'],
  ['ETIMEDOUT', 'it does not answer'],
  ['28000', 'it does not let this user in'],
  ['28P01', 'it refuses the user name or password'],
  ['3D000', 'it has no database of that name'],
  // A standby, or a primary that lost its place: nothing can be written here until it has changed.
  ['25006', 'it takes no writes'],
  ['25P03', 'the transaction was idle for too long'],
  ['40001', 'a transaction was overtaken by others again and again'],
  ['40P01', 'a transaction met a deadlock again and again'],
  ['53100', 'its disk is full'],
  ['53200', 'it is out of memory'],
  ['53300', 'it has no connection left'],
  ['55P03', 'a row stayed locked for too long'],
  ['57014', 'a statement took too long'],
  ['57P01', 'it is shutting down'],
  ['57P02', 'it is shutting down after a crash'],
  ['57P03', 'it is starting up or shutting down'],
])

/** Worth running again: deadlock, serialization, and a key that another node was first with. */
const RETRYABLE_CODES: ReadonlySet<string> = new Set(['40P01', '40001', '23505'])
const LOCK_NOT_AVAILABLE = '55P03'

/** Codes of errors after which the server hangs up, where it does not say so in English. */
const CLOSING_CODES = /^(08...|57P0[123]|25P03)$/

const codeOf = (error: unknown): string => String((error as { code?: unknown })?.code ?? '')

export const isRetryable = (error: unknown): boolean => RETRYABLE_CODES.has(codeOf(error))

/** Also a lock that a group did not wait for. Alone it waits long, and then once: else a lane stands for minutes. */
export const isRetryableAlone = (error: unknown): boolean => isRetryable(error) || codeOf(error) === LOCK_NOT_AVAILABLE

/** Whether the server hangs up after this, which it does some moments later. */
export function closesConnection(error: unknown): boolean {
  const { severity } = error as { severity?: unknown }
  return severity === 'FATAL' || severity === 'PANIC' || CLOSING_CODES.test(codeOf(error))
}

export function unavailable(reason: string, cause?: unknown): MoleculeError {
  const message = `the store is unavailable: ${reason}`
  return new MoleculeError('store_unavailable', message, { retryable: true, cause })
}

/** Why the server cannot be had; for a failure that is known to be one of the connection. */
export function asConnectionError(error: unknown, address: string): MoleculeError {
  if (error instanceof MoleculeError) return error
  const reason = MACHINE_REASONS.get(codeOf(error)) ?? 'the connection failed'
  return unavailable(`PostgreSQL at ${address}: ${reason}`, error)
}

/** An error of the machine becomes `store_unavailable`; ours pass; a constraint or syntax error stays what it is. */
export function asStoreError(error: unknown): unknown {
  if (error instanceof MoleculeError) return error
  const reason = MACHINE_REASONS.get(codeOf(error))
  return reason === undefined ? error : unavailable(`PostgreSQL: ${reason}`, error)
}
