/**
 * Checks a body against its schema. The error names the first bad field and its problem. An unknown field is refused by
 * name, because a typo that is silently dropped is found weeks later.
 */
import type { z } from 'zod'
import { MoleculeError } from '../../../errors.ts'
import { safeParse } from '../../../protocol/schemas.ts'

/** Throws `invalid_request` naming the field. `what` says what the body describes: "a token". */
export function validateBody<Schema extends z.ZodObject>(
  schema: Schema,
  body: unknown,
  what: string,
): z.output<Schema> {
  const result = safeParse(schema, body)
  if (result.success) return result.data
  const [issue] = result.error.issues
  if (issue?.code === 'unrecognized_keys') {
    const names = issue.keys.map((key) => `"${key}"`).join(', ')
    const known = Object.keys(schema.shape).join(', ')
    throw invalid(`${names} is not a field of ${what}; the fields are ${known}`, issue.keys[0] ?? '')
  }
  const path = issue?.path.map(String).join('.') ?? ''
  const problem = lowerFirst(issue?.message ?? 'invalid')
  throw invalid(path === '' ? 'the body must be a JSON object' : `field "${path}": ${problem}`, path)
}

function invalid(message: string, path: string): MoleculeError {
  return new MoleculeError('invalid_request', message, { details: { path } })
}

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1)
