/** Turns the text of a message into the arguments of a tool. Pure. */
import { MoleculeError } from '../../errors.ts'
import { isJsonObject, type JsonObject } from '../../protocol/json.ts'
import { type McpSettings, TEXT_PLACEHOLDER } from './settings.ts'

/** The members of a listed tool that are needed here. */
export interface McpTool {
  readonly name: string
  readonly inputSchema: JsonObject
}

/** `tool` is needed only if neither option names the argument for the text. */
export function toolArguments(
  text: string,
  { tool: name, argument, template = {} }: Pick<McpSettings, 'tool' | 'argument' | 'template'>,
  tool?: McpTool,
): JsonObject {
  const filled = fillTemplate(template, text) as JsonObject
  if (argument !== undefined) return { ...filled, [argument]: text }
  if (JSON.stringify(template).includes(TEXT_PLACEHOLDER)) return filled
  const found = tool === undefined ? undefined : textProperty(tool, template)
  if (found !== undefined) return { ...filled, [found]: text }
  const message = `tool "${name}" has no string argument left for the text: name the argument with "argument"`
  throw new MoleculeError('bad_config', message)
}

/** Replaces in every string of the template. By a function, because `replaceAll` would interpret `$&` in a message. */
function fillTemplate(value: unknown, text: string): unknown {
  if (typeof value === 'string') return value.replaceAll(TEXT_PLACEHOLDER, () => text)
  if (Array.isArray(value)) return value.map((item: unknown) => fillTemplate(item, text))
  if (!isJsonObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fillTemplate(item, text)]))
}

/** The first required string argument that the template does not set, else the first optional one. */
function textProperty({ inputSchema }: McpTool, template: JsonObject): string | undefined {
  const { properties, required } = inputSchema
  if (!isJsonObject(properties)) return undefined
  const texts = Object.entries(properties)
    .filter(([name, schema]) => isText(schema) && !Object.hasOwn(template, name))
    .map(([name]) => name)
  const wanted: readonly unknown[] = Array.isArray(required) ? required : []
  return texts.find((name) => wanted.includes(name)) ?? texts[0]
}

function isText(schema: unknown): boolean {
  if (!isJsonObject(schema)) return false
  const { type } = schema
  return type === 'string' || (Array.isArray(type) && type.includes('string'))
}
