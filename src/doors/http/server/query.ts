/** The parameters after the `?` of a request. A value that is not valid is refused with its name. */
import { z } from 'zod'
import { MoleculeError } from '../../../errors.ts'
import { safeParse } from '../../../protocol/schemas.ts'

/** The values as the schema types them: texts, whole numbers and flags. Parameters that it does not name are ignored. */
export function readQuery(
  schema: z.ZodObject,
  given: Readonly<Record<string, string>>,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(schema.shape).map(([name, field]) => {
      const type = withoutDefault(field as z.ZodType)
      const { data, success, error } = safeParse(field as z.ZodType, readValue(given[name], type))
      if (!success) throw invalid(name, problemOf(type) ?? error.issues[0]?.message ?? 'is not valid')
      return [name, data]
    }),
  )
}

function withoutDefault(field: z.ZodType): z.ZodType {
  if (field instanceof z.ZodOptional || field instanceof z.ZodDefault)
    return withoutDefault(field.unwrap() as z.ZodType)
  return field
}

/** A text that is no value of the type stays a text, which the schema then refuses. */
function readValue(text: string | undefined, type: z.ZodType): unknown {
  if (type instanceof z.ZodNumber && text !== undefined && /^\d{1,16}$/.test(text)) return Number(text)
  if (type instanceof z.ZodBoolean && (text === 'true' || text === 'false')) return text === 'true'
  return text
}

function problemOf(type: z.ZodType): string | undefined {
  if (type instanceof z.ZodNumber) return `must be a whole number from ${type.minValue} to ${type.maxValue}`
  return type instanceof z.ZodBoolean ? 'must be true or false' : undefined
}

function invalid(name: string, problem: string): MoleculeError {
  return new MoleculeError('invalid_request', `${name} ${problem}`, { details: { path: name } })
}
