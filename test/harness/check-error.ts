/** Checks an error that a caller gets: its code and its sentence. For `assert.rejects` and `assert.throws`. */
import assert from 'node:assert/strict'
import { MoleculeError } from '../../src/errors.ts'

export const hasCodeAndText = (code: string, text: RegExp) => (error: unknown) => {
  assert.ok(error instanceof MoleculeError)
  assert.equal(error.code, code)
  assert.match(error.message, text)
  return true
}
