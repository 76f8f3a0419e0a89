/**
 * A fake model provider for real agent CLIs, on loopback, in the wire formats of Anthropic, OpenAI and Google. Fixed
 * phrases in the last message choose its behaviour. It builds its answers from the agent's request, so that an agent
 * that forgot a turn, lost a tool or sent a wrong key cannot get the right answer.
 */
import { type ChatCompletionRequest, type FixtureOpts, type FixtureResponse, LLMock } from '@copilotkit/aimock'
import { startNamespaceProxy } from './namespace-proxy.ts'
import { failurePrompt, startFailingProvider } from './provider-failures.ts'

/** The only key that it accepts. */
export const MODEL_KEY = 'sk-molecule-tests-only'
/** The tool of `mcp-server.ts`. Each CLI adds its own prefix. */
const TOOL_NAME = 'lucky_number'

/** The messages that choose a behaviour. */
export const modelPrompts = {
  /** Answers with `Here you are.`, at once. */
  answer: 'Please answer.',
  /** Answers with the numbers of all messages that the agent remembers, in order. */
  number: (n: number) => `This is number ${n}, please count.`,
  /** Answers with the last password that the agent was told. */
  password: 'Please say the password.',
  /** Answers with the name of the model that the agent asked for. */
  model: 'Please name your model.',
  /** Answers with `recital`, in pieces over about a second. */
  recite: 'Please recite.',
  /** Makes the agent call the tool and answers with its result. */
  useTool: 'Please use the lucky tool.',
  /** Makes the agent delegate to the peer `colleague` with the MCP server of its workspace, and answers with the result. */
  delegate: 'Please ask the colleague.',
  /** Makes the agent's shell run `sleep` in its own process session and wait for it. */
  linger: (seconds: number) => `Please linger for ${seconds} s.`,
  /** Makes the agent's shell write `delivery` into the outbox folder that the agent's instructions name. */
  deliver: 'Please deliver the file.',
  /** Is refused with a rate limit. `provider-failures.ts` has all failures. */
  tooOften: failurePrompt('rate limit'),
} as const

export const recital = Array.from({ length: 40 }, (_, line) => `line ${line} of the recital`).join(', ')

/** Bytes that are no text in any encoding, so that a conversion to text on the way would be noticed. */
export const delivery = { name: 'delivery.bin', content: Buffer.from([0x00, 0xff, 0x0d, 0x0a, 0xc3, 0x28, 0x5c]) }

export interface FakeModel {
  /** The base URL; CLIs add their own paths. */
  readonly url: string
  /** The base URL for codex, which sends MCP tools in its own form. */
  readonly codexUrl: string
  stop(): Promise<void>
}

export async function startFakeModel(): Promise<FakeModel> {
  const mock = new LLMock({ port: 0, host: '127.0.0.1', strict: true, auth: { apiKeys: [MODEL_KEY] } })
  for (const { pattern, after, answer, pace } of RULES) {
    const matches = (request: ChatCompletionRequest) => {
      const prompt = findPrompt(request)
      if (prompt === undefined || !pattern.test(prompt.text)) return false
      return after === undefined || after === (prompt.hasToolResult ? 'tool' : 'message')
    }
    mock.on({ predicate: matches }, answer, pace)
  }
  // Agents also request titles and summaries by themselves.
  mock.on({}, { content: 'A title', usage: USAGE })
  const failing = await startFailingProvider(await mock.start())
  const { url } = failing
  const proxy = await startNamespaceProxy(url)
  return {
    url,
    codexUrl: proxy.url,
    async stop() {
      await proxy.stop()
      await failing.stop()
      await mock.stop()
    },
  }
}

/** The fields of all providers at once; each CLI reads its own and ignores the rest. */
const USAGE = {
  prompt_tokens: 11,
  completion_tokens: 7,
  input_tokens: 11,
  output_tokens: 7,
  promptTokenCount: 11,
  candidatesTokenCount: 7,
}

interface ModelRule {
  readonly pattern: RegExp
  /** Applies only directly after the message, or only after a tool result. */
  readonly after?: 'message' | 'tool'
  readonly answer: Parameters<LLMock['on']>[1]
  readonly pace?: FixtureOpts
}

const RULES: readonly ModelRule[] = [
  { pattern: /Please answer/, answer: { content: 'Here you are.', usage: USAGE } },
  { pattern: /number \d+, please count/, answer: count },
  { pattern: /Please say the password/, answer: sayPassword },
  { pattern: /Please name your model/, answer: ({ model }) => ({ content: `I am ${model}`, usage: USAGE }) },
  {
    pattern: /Please recite/,
    answer: { content: recital, usage: USAGE },
    pace: { chunkSize: 20, streamingProfile: { ttft: 50, tps: 40 } },
  },
  { pattern: /Please use the lucky tool/, after: 'message', answer: callTool },
  { pattern: /Please use the lucky tool/, after: 'tool', answer: reportTool },
  { pattern: /Please ask the colleague/, after: 'message', answer: delegate },
  { pattern: /Please ask the colleague/, after: 'tool', answer: reportTool },
  { pattern: /Please linger/, after: 'message', answer: linger },
  { pattern: /Please linger/, after: 'tool', answer: { content: 'The shell came back.', usage: USAGE } },
  { pattern: /Please deliver/, after: 'message', answer: deliver },
  { pattern: /Please deliver/, after: 'tool', answer: { content: 'It is delivered.', usage: USAGE } },
]

/** The last message with a known phrase; an agent may add its own text after it. */
function findPrompt({ messages }: ChatCompletionRequest): { text: string; hasToolResult: boolean } | undefined {
  const at = messages.findLastIndex((one) => one.role === 'user' && KNOWN_PHRASE.test(textOf(one)))
  const message = messages[at]
  if (message === undefined) return undefined
  return { text: textOf(message), hasToolResult: messages.slice(at).some(({ role }) => role === 'tool') }
}

const KNOWN_PHRASE =
  /number \d+, please count|Please (answer|recite|say the password|name your model|use the lucky tool|ask the colleague|linger|deliver)/

function count(request: ChatCompletionRequest): FixtureResponse {
  const texts = request.messages.filter(({ role }) => role === 'user').map(textOf)
  const numbers = texts.flatMap((text) => [...text.matchAll(/number (\d+), please count/g)].map((match) => match[1]))
  return { content: `I know ${numbers.join(' ')}`, usage: USAGE }
}

function sayPassword({ messages }: ChatCompletionRequest): FixtureResponse {
  const given = messages.filter(({ role }) => role !== 'assistant')
  const words = given.flatMap((message) => textOf(message).match(/The password is \w+\./g) ?? [])
  return { content: words.at(-1) ?? 'There is no password.', usage: USAGE }
}

function callTool(request: ChatCompletionRequest): FixtureResponse {
  const name = toolNames(request).find((tool) => tool.endsWith(TOOL_NAME))
  if (name === undefined) return { content: `There is no tool ${TOOL_NAME}.`, usage: USAGE }
  return { toolCalls: [{ name, arguments: JSON.stringify({ wish: 'seven' }) }], usage: USAGE }
}

function delegate(request: ChatCompletionRequest): FixtureResponse {
  const name = toolNames(request).find((tool) => tool.endsWith('delegate_task'))
  if (name === undefined)
    return { content: `There is no delegate_task in ${toolNames(request).join(', ')}.`, usage: USAGE }
  const given = { workspace_id: 'colleague', task: 'the weather' }
  return { toolCalls: [{ name, arguments: JSON.stringify(given) }], usage: USAGE }
}

function reportTool(request: ChatCompletionRequest): FixtureResponse {
  const result = request.messages.findLast(({ role }) => role === 'tool')
  return { content: `The tool said: ${result === undefined ? 'nothing' : textOf(result)}`, usage: USAGE }
}

/** The shell tools of the CLIs, with the arguments that each expects. */
const SHELLS: Readonly<Record<string, (command: string) => Readonly<Record<string, unknown>>>> = {
  Bash: (command) => ({ command, description: 'A test command', timeout: 600_000 }),
  bash: (command) => ({ command, description: 'A test command', timeout: 600_000 }),
  run_shell_command: (command) => ({ command, description: 'A test command' }),
  exec_command: (command) => ({ cmd: command, yield_time_ms: 600_000 }),
  shell_command: (command) => ({ command, timeout_ms: 600_000 }),
  shell: (command) => ({ command: ['sh', '-c', command], timeout_ms: 600_000 }),
  exec: (command) => ({ command, timeoutSeconds: 600 }),
}

/** `setsid` moves the sleep out of the process group of the agent; the shell still waits for it. */
function linger(request: ChatCompletionRequest): FixtureResponse {
  const seconds = /linger for (\d+) s/.exec(findPrompt(request)?.text ?? '')?.[1]
  return callShell(request, `setsid sleep ${seconds} & wait`)
}

/** The folder comes from the agent's instructions, so an agent without them cannot deliver. */
function deliver(request: ChatCompletionRequest): FixtureResponse {
  const folder = /into the folder that (\$\w+) names/.exec(request.messages.map(textOf).join('\n'))?.[1]
  if (folder === undefined) return { content: 'The instructions name no folder for files.', usage: USAGE }
  const octal = [...delivery.content].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
  return callShell(request, `printf '${octal}' > "${folder}/${delivery.name}"`)
}

function callShell(request: ChatCompletionRequest, command: string): FixtureResponse {
  const names = toolNames(request)
  const name = Object.keys(SHELLS).find((shell) => names.includes(shell))
  if (name === undefined) return { content: `There is no shell among ${names.join(', ')}.`, usage: USAGE }
  return { toolCalls: [{ name, arguments: JSON.stringify(SHELLS[name]?.(command)) }], usage: USAGE }
}

const toolNames = ({ tools = [] }: ChatCompletionRequest): string[] => tools.map((tool) => tool.function.name)

function textOf({ content }: ChatCompletionRequest['messages'][number]): string {
  if (typeof content === 'string') return content
  return (content ?? []).map((part) => part.text ?? '').join('')
}
