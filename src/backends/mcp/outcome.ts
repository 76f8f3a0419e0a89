/** Turns an error of the connection to an MCP server into ours. parse.ts reads a failed tool. Pure. */
import { MoleculeError } from '../../errors.ts'

export function failureOf(thrown: unknown): MoleculeError {
  if (thrown instanceof MoleculeError) return thrown
  const error = thrown instanceof Error ? thrown : new Error(String(thrown))
  const { status, code } = error as { status?: unknown; code?: unknown }
  if (error.name === 'UnauthorizedError' || status === 401 || status === 403) {
    return new MoleculeError('auth_failed', `the MCP server refuses the login: ${error.message}`, { cause: error })
  }
  if (status === 429) return new MoleculeError('rate_limited', error.message, { retryable: true, cause: error })
  // A number is the code of a JSON-RPC error that the server answered.
  if (typeof code === 'number') {
    const isConfig = /tool .{0,200}not found|unknown tool|invalid arguments/i.test(error.message)
    return new MoleculeError(isConfig ? 'bad_config' : 'agent_failed', error.message, {
      cause: error,
      details: { code },
    })
  }
  const reason = (error.cause as { code?: unknown } | undefined)?.code
  if (typeof reason === 'string') {
    const details = { unreachable: reason, remote: true }
    const message = `the MCP server cannot be reached (${reason})`
    return new MoleculeError('provider_unreachable', message, { retryable: true, cause: error, details })
  }
  return new MoleculeError('provider_failed', `the MCP server failed: ${error.message}`, {
    retryable: true,
    cause: error,
    details: { remote: true },
  })
}
