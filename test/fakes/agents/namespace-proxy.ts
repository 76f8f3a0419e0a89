/**
 * A proxy between codex and the fake model. Codex sends MCP tools in a `namespace` and expects the namespace in the call;
 * the fake model supports only plain functions. The proxy renames each tool to `namespace--tool` in requests and splits
 * such names in responses. Everything else passes unchanged.
 */
import { type ModelProxy, passOn, startModelProxy } from './model-proxy.ts'

const SEPARATOR = '--'

export function startNamespaceProxy(target: string): Promise<ModelProxy> {
  return startModelProxy((call) => passOn(target, { ...call, body: flatten(call.body) }, split))
}

interface Tool {
  readonly type: string
  readonly name?: string
  readonly tools?: readonly Tool[]
}

interface Item {
  readonly type?: string
  readonly name?: string
  readonly namespace?: string
}

/** The request with the tools of every namespace as plain functions, and the calls of earlier turns renamed alike. */
function flatten(text: string): string {
  if (!text.startsWith('{')) return text
  const body = JSON.parse(text) as { tools?: Tool[]; input?: Item[] | string }
  const tools = body.tools?.flatMap(({ type, name, tools: inner }) =>
    type === 'namespace' ? (inner ?? []).map((tool) => ({ ...tool, name: `${name}${SEPARATOR}${tool.name}` })) : [],
  )
  const plain = body.tools?.filter(({ type }) => type !== 'namespace')
  const input = Array.isArray(body.input) ? body.input.map(joinName) : body.input
  return JSON.stringify({ ...body, ...(tools && { tools: [...(plain ?? []), ...tools] }), ...(input && { input }) })
}

function joinName(item: Item): Item {
  if (item.namespace === undefined) return item
  const { namespace, ...rest } = item
  return { ...rest, name: `${namespace}${SEPARATOR}${item.name}` }
}

/** Works line by line: a line of an event stream may be split over two chunks. */
async function* split(chunks: AsyncIterable<Uint8Array>): AsyncIterable<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) yield `${splitNames(line)}\n`
  }
  if (rest !== '') yield splitNames(rest)
}

const splitNames = (line: string): string =>
  line.replaceAll(/"name":"([^"]+?)--([^"]+)"/g, (_, namespace, name) => `"namespace":"${namespace}","name":"${name}"`)
