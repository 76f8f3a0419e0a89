/** The text of a message as the arguments of a tool. Pure. */
import { MoleculeError } from '../../errors.ts'
import { isJsonObject, type JsonObject } from '../../protocol/json.ts'
import { type McpSettings, TEXT_PLACEHOLDER } from './settings.ts'

/** As the server lists it, as far as it matters here. */
export interface McpTool {
  readonly name: string
  readonly inputSchema: JsonObject
}

type Placing = Pick<McpSettings, 'tool' | 'argument' | 'template'>

/** `tool` is needed only where neither option says which argument gets the text. */
export function toolArguments(
  text: string,
  { tool: name, argument, template = {} }: Placing,
  tool?: McpTool,
): JsonObject {
  const filled = fillTemplate(template, text) as JsonObject
  if (argument !== undefined) return { ...filled, [argument]: text }
  if (JSON.stringify(template).includes(TEXT_PLACEHOLDER)) return filled
  const found = tool === undefined ? undefined : textProperty(tool, template)
  if (found !== undefined) return { ...filled, [found]: text }
  const message = `tool "${name}" takes no text that is not given already: name its argument with "argument"`
  throw new MoleculeError('bad_config', message)
}

/** In every text of the template, whole or in part; by a function, because `$&` in a message is not ours to interpret. */
function fillTemplate(value: unknown, text: string): unknown {
  if (typeof value === 'string') return value.replaceAll(TEXT_PLACEHOLDER, () => text)
  if (Array.isArray(value)) return value.map((item: unknown) => fillTemplate(item, text))
  if (!isJsonObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fillTemplate(item, text)]))
}

/** The first text that the tool requires, else its first: of those that the template leaves open. */
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
