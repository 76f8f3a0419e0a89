/**
 * A model provider for real agent CLIs, on loopback: it speaks the wire formats of Anthropic, OpenAI and Google and
 * does what the last message tells it in a few fixed words. What it answers is made from what the agent sent, so that
 * an agent which forgot a turn, lost a tool or sent another key cannot get the right answer.
 */
import { type ChatCompletionRequest, type FixtureOpts, type FixtureResponse, LLMock } from '@copilotkit/aimock'
import { startNamespaceProxy } from './namespace-proxy.ts'

/** The one key that is let in. */
export const MODEL_KEY = 'sk-molecule-tests-only'
/** The tool of `mcp-server.ts`; each CLI puts a prefix of its own before it. */
const TOOL_NAME = 'lucky_number'

/** What a message says to have the model do something. */
export const modelPrompts = {
  /** Answers with `Here you are.`, at once. */
  answer: 'Please answer.',
  /** Answers with the numbers of all messages the agent remembers, in order. */
  number: (n: number) => `This is number ${n}, please count.`,
  /** Answers with `recital`, in pieces over about a second. */
  recite: 'Please recite.',
  /** Has the agent call the tool and answers with what it gave. */
  useTool: 'Please use the lucky tool.',
  /** Has the agent start `sleep` in a session of its own, by its shell, and wait for it. */
  linger: (seconds: number) => `Please linger for ${seconds} s.`,
  /** Has the agent write `delivery` by its shell, into the folder for files of its answer that it was told of. */
  deliver: 'Please deliver the file.',
  /** Is refused: the provider asks to wait. */
  tooOften: 'Please refuse, too often.',
} as const

export const recital = Array.from({ length: 40 }, (_, line) => `line ${line} of the recital`).join(', ')

/** No text in any encoding, so that nothing on its way can have taken it for some. */
export const delivery = { name: 'delivery.bin', content: Buffer.from([0x00, 0xff, 0x0d, 0x0a, 0xc3, 0x28, 0x5c]) }

export interface FakeModel {
  /** Of the server itself; CLIs add their own paths. */
  readonly url: string
  /** The same for codex, which names MCP tools in a way of its own. */
  readonly codexUrl: string
  stop(): Promise<void>
}

export async function startFakeModel(): Promise<FakeModel> {
  const mock = new LLMock({ port: 0, host: '127.0.0.1', strict: true, auth: { apiKeys: [MODEL_KEY] } })
  for (const { pattern, after, answer, pace } of RULES) {
    const isMeant = (request: ChatCompletionRequest) => {
      const order = orderOf(request)
      if (order === undefined || !pattern.test(order.text)) return false
      return after === undefined || after === (order.hasToolResult ? 'tool' : 'message')
    }
    mock.on({ predicate: isMeant }, answer, pace)
  }
  // Agents also ask for titles and summaries of their own accord.
  mock.on({}, { content: 'A title', usage: USAGE })
  const url = await mock.start()
  const proxy = await startNamespaceProxy(url)
  return {
    url,
    codexUrl: proxy.url,
    async stop() {
      await proxy.stop()
      await mock.stop()
    },
  }
}

/** In the words of every provider at once: each reads its own and passes over the rest. */
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
  /** Only right after the message, or only after a tool has answered. */
  readonly after?: 'message' | 'tool'
  readonly answer: Parameters<LLMock['on']>[1]
  readonly pace?: FixtureOpts
}

const RULES: readonly ModelRule[] = [
  { pattern: /Please answer/, answer: { content: 'Here you are.', usage: USAGE } },
  { pattern: /number \d+, please count/, answer: count },
  {
    pattern: /Please recite/,
    answer: { content: recital, usage: USAGE },
    pace: { chunkSize: 20, streamingProfile: { ttft: 50, tps: 40 } },
  },
  { pattern: /Please use the lucky tool/, after: 'message', answer: callTool },
  { pattern: /Please use the lucky tool/, after: 'tool', answer: reportTool },
  { pattern: /Please linger/, after: 'message', answer: linger },
  { pattern: /Please linger/, after: 'tool', answer: { content: 'The shell came back.', usage: USAGE } },
  { pattern: /Please deliver/, after: 'message', answer: deliver },
  { pattern: /Please deliver/, after: 'tool', answer: { content: 'It is delivered.', usage: USAGE } },
  {
    pattern: /Please refuse/,
    answer: {
      error: { message: 'Rate limit reached, try again later', type: 'rate_limit_error' },
      status: 429,
      retryAfter: 1,
    },
  },
]

/** The last message that tells us something: an agent may put words of its own behind it. */
function orderOf({ messages }: ChatCompletionRequest): { text: string; hasToolResult: boolean } | undefined {
  const at = messages.findLastIndex((one) => one.role === 'user' && ORDER.test(textOf(one)))
  const message = messages[at]
  if (message === undefined) return undefined
  return { text: textOf(message), hasToolResult: messages.slice(at).some(({ role }) => role === 'tool') }
}

const ORDER = /number \d+, please count|Please (answer|recite|use the lucky tool|linger|deliver|refuse)/

function count(request: ChatCompletionRequest): FixtureResponse {
  const texts = request.messages.filter(({ role }) => role === 'user').map(textOf)
  const numbers = texts.flatMap((text) => [...text.matchAll(/number (\d+), please count/g)].map((match) => match[1]))
  return { content: `I know ${numbers.join(' ')}`, usage: USAGE }
}

function callTool(request: ChatCompletionRequest): FixtureResponse {
  const name = toolNames(request).find((tool) => tool.endsWith(TOOL_NAME))
  if (name === undefined) return { content: `There is no tool ${TOOL_NAME}.`, usage: USAGE }
  return { toolCalls: [{ name, arguments: JSON.stringify({ wish: 'seven' }) }], usage: USAGE }
}

function reportTool(request: ChatCompletionRequest): FixtureResponse {
  const result = request.messages.findLast(({ role }) => role === 'tool')
  return { content: `The tool said: ${result === undefined ? 'nothing' : textOf(result)}`, usage: USAGE }
}

/** The shell tools of claude, codex, gemini and opencode, with what each wants to be told. */
const SHELLS: Readonly<Record<string, (command: string) => Readonly<Record<string, unknown>>>> = {
  Bash: (command) => ({ command, description: 'As told', timeout: 600_000 }),
  bash: (command) => ({ command, description: 'As told', timeout: 600_000 }),
  run_shell_command: (command) => ({ command, description: 'As told' }),
  exec_command: (command) => ({ cmd: command, yield_time_ms: 600_000 }),
  shell_command: (command) => ({ command, timeout_ms: 600_000 }),
  shell: (command) => ({ command: ['sh', '-c', command], timeout_ms: 600_000 }),
  exec: (command) => ({ command, timeoutSeconds: 600 }),
}

/** `setsid` takes the sleep out of the group of whoever started it; the shell waits for it all the same. */
function linger(request: ChatCompletionRequest): FixtureResponse {
  const seconds = /linger for (\d+) s/.exec(orderOf(request)?.text ?? '')?.[1]
  return callShell(request, `setsid sleep ${seconds} & wait`)
}

/** Where to is taken from the agent's instructions: one that was not told cannot deliver. */
function deliver(request: ChatCompletionRequest): FixtureResponse {
  const folder = /into the folder that (\$\w+) names/.exec(request.messages.map(textOf).join('\n'))?.[1]
  if (folder === undefined) return { content: 'There is no word of a folder for files.', usage: USAGE }
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
