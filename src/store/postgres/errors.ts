/**
 * Maps errors of PostgreSQL: problems of the machine, errors to retry, and defects of the program. Invariant: a message
 * made here shows only host and port of the database's URL.
 */
import { MoleculeError } from '../../errors.ts'

/** Codes of the server (SQLSTATE) and of the network for a problem of the machine, not of the statement. */
const MACHINE_REASONS: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'it refuses connections'],
  ['ECONNRESET', 'the connection was reset'],
  ['EPIPE', 'the connection was reset'],
  ['ENOTFOUND', 'its host name is unknown'],
  ['EAI_AGAIN', 'its host name cannot be looked up'],
  ['EHOSTUNREACH', 'its host cannot be reached'],
  ['ENETUNREACH', 'its network cannot be reached'],
  ['ETIMEDOUT', 'it does not answer'],
  ['28000', 'it does not allow this user'],
  ['28P01', 'it refuses the user name or password'],
  ['3D000', 'it has no database of that name'],
  // A standby, or a former primary: it accepts no writes.
  ['25006', 'it is read-only'],
  ['25P03', 'the transaction was idle for too long'],
  ['40001', 'a transaction could not be serialized after several tries'],
  ['40P01', 'a transaction met a deadlock in several tries'],
  ['53100', 'its disk is full'],
  ['53200', 'it is out of memory'],
  ['53300', 'it has no free connection'],
  ['55P03', 'a row stayed locked for too long'],
  ['57014', 'a statement took too long'],
  ['57P01', 'it is shutting down'],
  ['57P02', 'it is shutting down after a crash'],
  ['57P03', 'it is starting up or shutting down'],
])

/** Errors to retry: deadlock, serialization, and a key that another node inserted first. */
const RETRYABLE_CODES: ReadonlySet<string> = new Set(['40P01', '40001', '23505'])
const LOCK_NOT_AVAILABLE = '55P03'

/** Codes after which the server closes the connection, for a server whose severity is not in English. */
const CLOSING_CODES = /^(08...|57P0[123]|25P03)$/

const codeOf = (error: unknown): string => String((error as { code?: unknown })?.code ?? '')

export const isRetryable = (error: unknown): boolean => RETRYABLE_CODES.has(codeOf(error))

/**
 * Includes a lock that a group did not wait for. Alone, an operation waits long for it, but once: retries would block
 * the lane for minutes.
 */
export const isRetryableAlone = (error: unknown): boolean => isRetryable(error) || codeOf(error) === LOCK_NOT_AVAILABLE

/** Whether the server closes the connection after this error. It does so shortly after. */
export function closesConnection(error: unknown): boolean {
  const { severity } = error as { severity?: unknown }
  return severity === 'FATAL' || severity === 'PANIC' || CLOSING_CODES.test(codeOf(error))
}

export function unavailable(reason: string, cause?: unknown): MoleculeError {
  const message = `the store is unavailable: ${reason}`
  return new MoleculeError('store_unavailable', message, { retryable: true, cause })
}

/** For a failure that is known to be one of the connection. */
export function asConnectionError(error: unknown, address: string): MoleculeError {
  if (error instanceof MoleculeError) return error
  const reason = MACHINE_REASONS.get(codeOf(error)) ?? 'the connection failed'
  return unavailable(`PostgreSQL at ${address}: ${reason}`, error)
}

/** An error of the machine becomes `store_unavailable`. Other errors, such as of a constraint, stay as they are. */
export function asStoreError(error: unknown): unknown {
  if (error instanceof MoleculeError) return error
  const reason = MACHINE_REASONS.get(codeOf(error))
  return reason === undefined ? error : unavailable(`PostgreSQL: ${reason}`, error)
}
