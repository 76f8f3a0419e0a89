/** What went wrong between us and an MCP server, in our words. A tool that failed is no failure of these: parse.ts. */
import { MoleculeError } from '../../errors.ts'

export function failureOf(thrown: unknown): MoleculeError {
  if (thrown instanceof MoleculeError) return thrown
  const error = thrown instanceof Error ? thrown : new Error(String(thrown))
  const { status, code } = error as { status?: unknown; code?: unknown }
  if (error.name === 'UnauthorizedError' || status === 401 || status === 403) {
    return new MoleculeError('auth_failed', `the MCP server refuses the login: ${error.message}`, { cause: error })
  }
  if (status === 429) return new MoleculeError('rate_limited', error.message, { retryable: true, cause: error })
  // A number is the code of a JSON-RPC error: the server's own answer.
  if (typeof code === 'number') {
    const isOurs = /tool .*not found|unknown tool|invalid arguments/i.test(error.message)
    return new MoleculeError(isOurs ? 'bad_config' : 'agent_failed', error.message, { cause: error, details: { code } })
  }
  const reason = (error.cause as { code?: unknown } | undefined)?.code
  const words = typeof reason === 'string' ? `it cannot be reached (${reason})` : error.message
  return new MoleculeError('provider_failed', `the MCP server: ${words}`, { retryable: true, cause: error })
}
