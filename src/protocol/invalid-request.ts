/** Builds the `invalid_request` error that names the place of the problem. */
import { MoleculeError } from '../errors.ts'

/** The message is the path and the problem: `params.message.parts[0].raw must be base64`. */
export function invalidRequest(path: string, problem: string): MoleculeError {
  return new MoleculeError('invalid_request', `${path} ${problem}`, { details: { path } })
}
