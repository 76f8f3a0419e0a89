/**
 * What is wrong with a field, in the words of all our messages: `must be a text`. zod's own sentences name types of its
 * library. Importing this file sets them for every schema; a schema's own sentence wins.
 */
import { z } from 'zod'

type Issue = z.core.$ZodRawIssue

const TYPES: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
  null: 'null',
}

const FORMATS: Readonly<Record<string, string>> = {
  url: 'a URL, such as https://example.org/hook',
  safeint: 'a whole number',
  datetime: 'a time in ISO 8601',
  base64: 'base64',
}

/** Values of an enumeration in a sentence; of a longer one only the first are named. */
const VALUES_MAX = 40

function fieldProblem(issue: Issue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined ? 'is missing' : `must be ${typeText(issue)}`
    case 'invalid_value':
      return `must be ${anyOf(issue.values.map(String))}`
    case 'too_small':
      return `must ${smallest(issue)}`
    case 'too_big':
      return `must ${largest(issue)}`
    case 'invalid_format':
      return `must be ${FORMATS[issue.format] ?? `a valid ${issue.format}`}`
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`
    case 'unrecognized_keys':
      return `has unknown keys: ${issue.keys.join(', ')}`
    default:
      return 'has a value that is not allowed'
  }
}

const typeText = ({ expected, format }: Issue & { code: 'invalid_type' } & { format?: string }): string =>
  TYPES[format === 'safeint' ? 'int' : expected] ?? expected

function smallest({ origin, minimum, inclusive }: Issue & { code: 'too_small' }): string {
  const unit = UNITS[origin]
  if (unit === undefined) return `be ${inclusive ? 'at least' : 'above'} ${minimum}`
  return minimum === 1 ? 'not be empty' : `have at least ${minimum} ${unit}`
}

function largest({ origin, maximum, inclusive }: Issue & { code: 'too_big' }): string {
  const unit = UNITS[origin]
  return unit === undefined ? `be ${inclusive ? 'at most' : 'below'} ${maximum}` : `have at most ${maximum} ${unit}`
}

const UNITS: Readonly<Record<string, string>> = { string: 'characters', array: 'entries', set: 'entries' }

/** `a, b or c`. */
function anyOf(values: readonly string[]): string {
  const [last = '', ...others] = values.slice(0, VALUES_MAX).toReversed()
  return others.length === 0 ? last : `${others.toReversed().join(', ')} or ${last}`
}

z.config({ customError: fieldProblem })
