/** Every runtime that the page offers for a new workspace: in groups, with the settings that each of them needs. */
import type { FoundAgentView } from '../../../src/client/views.ts'
import { type AgentChoice, foundChoices, MOCK, SHELL_COMMAND } from './agents.ts'

export interface RuntimeGroups {
  /** What can be chosen without more: the agents that were found, a command, the mock. */
  readonly here: readonly AgentChoice[]
  /** Other kinds of agents, and those that are not on the machine. */
  readonly more: readonly AgentChoice[]
}

const OTHER_KINDS: readonly AgentChoice[] = [
  {
    backend: 'openai',
    title: 'A model by its API',
    name: 'Model',
    mark: 'ai',
    about: 'Any endpoint that speaks the OpenAI API, such as Ollama.',
  },
  {
    backend: 'acp',
    title: 'An ACP agent',
    name: 'ACP agent',
    mark: 'ac',
    about: 'Any program that speaks the Agent Client Protocol.',
  },
  {
    backend: 'mcp',
    title: 'A tool of an MCP server',
    name: 'MCP tool',
    mark: 'mc',
    about: 'Each message is one call of the tool.',
  },
  {
    backend: 'a2a',
    title: 'A remote A2A agent',
    name: 'Remote agent',
    mark: 'a2',
    about: 'Messages go to an agent at another address.',
  },
  {
    backend: 'stdio',
    title: 'A program that keeps running',
    name: 'Program',
    mark: '>_',
    about: 'It reads a line of JSON-RPC and answers with one.',
  },
]

/** `found` is undefined where the platform could not look. */
export function groupRuntimes(found: readonly FoundAgentView[] = []): RuntimeGroups {
  const choices = foundChoices(found)
  const isHere = ({ isMissing }: AgentChoice) => isMissing === undefined
  return {
    here: [...choices.filter(isHere), SHELL_COMMAND, MOCK],
    more: [...OTHER_KINDS, ...choices.filter((choice) => !isHere(choice))],
  }
}

export interface RuntimeField {
  /** The key in `runtime_config`. */
  readonly key: string
  readonly label: string
  readonly placeholder: string
  readonly hint?: string
  /** What is said while it is empty; absent = it may stay empty. */
  readonly missing?: string
}

const URL_MISSING = 'Write the address, beginning with http:// or https://.'

const FIELDS: Readonly<Record<string, readonly RuntimeField[]>> = {
  exec: [
    {
      key: 'cmd',
      label: 'Command',
      placeholder: 'python handler.py',
      hint: 'It gets the message on standard input and prints the answer.',
      missing: 'Write the command that answers messages.',
    },
  ],
  stdio: [
    {
      key: 'cmd',
      label: 'Command',
      placeholder: 'python agent.py',
      hint: 'It is started once and gets a line for each message.',
      missing: 'Write the command that starts the program.',
    },
  ],
  acp: [
    {
      key: 'cmd',
      label: 'Command',
      placeholder: 'goose acp',
      missing: 'Write the command that starts the agent.',
    },
  ],
  openai: [
    {
      key: 'url',
      label: 'Base URL',
      placeholder: 'http://127.0.0.1:11434/v1',
      hint: 'Empty means api.openai.com. The key comes from OPENAI_API_KEY, or from token_file in the config.',
    },
  ],
  a2a: [{ key: 'url', label: 'Address', placeholder: 'https://agent.example.org', missing: URL_MISSING }],
  mcp: [
    { key: 'tool', label: 'Tool', placeholder: 'search', missing: 'Write the name of the tool.' },
    {
      key: 'command',
      label: 'Command of the server',
      placeholder: 'npx -y some-mcp-server',
      hint: 'Or leave it empty and write a URL.',
    },
    { key: 'url', label: 'URL of the server', placeholder: 'https://tools.example.org/mcp' },
  ],
}

export const fieldsOf = (backend: string): readonly RuntimeField[] => FIELDS[backend] ?? []

const WITHOUT_MODEL: ReadonlySet<string> = new Set(['exec', 'mock', 'stdio', 'mcp', 'a2a'])

export const hasModel = (backend: string): boolean => !WITHOUT_MODEL.has(backend)

/** Agents whose tools a person can allow or deny. The others have none to ask about, or only their own settings decide. */
const ASKING: ReadonlySet<string> = new Set(['acp', 'claude-code', 'codex', 'gemini', 'hermes', 'opencode'])

export const canAsk = (backend: string): boolean => ASKING.has(backend)
