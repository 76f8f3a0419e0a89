/** Values in the query of a route. A value that is not valid is refused with its name. */
import type { Context } from 'hono'
import { MoleculeError } from '../../../errors.ts'

/** `true` or `false`; absent counts as false. */
export function readQueryFlag(context: Context, name: string): boolean {
  const value = context.req.query(name)
  if (value === undefined || value === 'false') return false
  if (value === 'true') return true
  throw invalid(name, 'must be true or false')
}

/** A whole number within the range; undefined where it is absent. */
export function readQueryNumber(
  context: Context,
  name: string,
  { min, max }: { min: number; max: number },
): number | undefined {
  const given = context.req.query(name)
  if (given === undefined) return undefined
  const number = /^\d{1,16}$/.test(given) ? Number(given) : Number.NaN
  if (number >= min && number <= max) return number
  throw invalid(name, `must be a whole number from ${min} to ${max}`)
}

function invalid(name: string, problem: string): MoleculeError {
  return new MoleculeError('invalid_request', `${name} ${problem}`, { details: { path: name } })
}
