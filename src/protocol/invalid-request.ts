/** The refusal of something that came in: `invalid_request`, naming the place in words that its sender can follow. */
import { MoleculeError } from '../errors.ts'

/** `path` as in `params.message.parts[0].raw`; the message is the path and what is wrong with it. */
export function invalidRequest(path: string, problem: string): MoleculeError {
  return new MoleculeError('invalid_request', `${path} ${problem}`, { details: { path } })
}
