/** A switch in the query of a route: absent is off, and what is neither true nor false is refused. */
import type { Context } from 'hono'
import { MoleculeError } from '../../../errors.ts'
import type { HttpEnv } from './guard.ts'

export function readQueryFlag(context: Context<HttpEnv>, name: string): boolean {
  const value = context.req.query(name)
  if (value === undefined || value === 'false') return false
  if (value === 'true') return true
  throw new MoleculeError('invalid_request', `${name} must be true or false`, { details: { path: name } })
}
