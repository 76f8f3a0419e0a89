/** The agents that a person can choose for a workspace, in the order in which they are offered. */
import type { FoundAgentView } from '../../../src/client/views.ts'
import { asSentence } from '../api/sentence.ts'

export interface AgentChoice {
  readonly backend: string
  readonly title: string
  /** The name of a workspace in a new folder. */
  readonly name: string
  /** Two letters in place of a picture. */
  readonly mark: string
  readonly version?: string
  readonly about: string
  /** It is not on the machine of the platform. */
  readonly isMissing?: true
  /** Why it cannot work now: what to run on the machine of the platform, and the command in it. */
  readonly remedy?: { readonly text: string; readonly command?: string }
}

const NAMES: Readonly<Record<string, readonly [title: string, mark: string]>> = {
  'claude-code': ['Claude Code', 'cc'],
  codex: ['Codex', 'cx'],
  gemini: ['Gemini', 'ge'],
  opencode: ['OpenCode', 'oc'],
  hermes: ['Hermes', 'he'],
  openclaw: ['OpenClaw', 'ow'],
}

export const SHELL_COMMAND: AgentChoice = {
  backend: 'exec',
  title: 'A shell command',
  name: 'Shell',
  mark: '$',
  about: 'Any program that reads a message and prints the answer.',
}

export const MOCK: AgentChoice = {
  backend: 'mock',
  title: 'Try without an agent',
  name: 'Echo',
  mark: '··',
  about: 'A mock repeats what you say. No account, no cost.',
}

/** The agents that Molecule knows: those that can start come first, those that are not installed last. */
export function foundChoices(found: readonly FoundAgentView[]): AgentChoice[] {
  const rankOf = ({ installed, logged_in: isLoggedIn, problem }: FoundAgentView): number => {
    if (!installed) return 2
    return isLoggedIn && problem === undefined ? 0 : 1
  }
  return found.toSorted((a, b) => rankOf(a) - rankOf(b)).map(toChoice)
}

function toChoice(agent: FoundAgentView): AgentChoice {
  const { backend, program, installed, version, problem, logged_in: isLoggedIn, remedy } = agent
  const [title, mark] = NAMES[backend] ?? [program, program.slice(0, 2)]
  const choice = { backend, title, name: title, mark, version }
  if (!installed) {
    return { ...choice, isMissing: true, about: `Not found on this machine. ${installText(program, remedy)}` }
  }
  if (isLoggedIn && problem === undefined) return { ...choice, about: 'Logged in.' }
  const about = problem === undefined ? 'Not logged in.' : asSentence(problem)
  const command = /"([^"]+)"/.exec(remedy ?? '')?.[1]
  return {
    ...choice,
    about,
    remedy: { text: asSentence(remedy ?? ''), command },
  }
}

/** A command stays as it must be typed: without a capital letter and without a full stop. */
function installText(program: string, remedy = `install ${program} on the machine of the platform`): string {
  return /^npm /.test(remedy) ? `Install it with: ${remedy}` : asSentence(remedy)
}

/** The name, or with the lowest number that makes it free: `shop-2`. */
export function freeName(wanted: string, taken: ReadonlySet<string>): string {
  for (let number = 1; ; number++) {
    const name = number === 1 ? wanted : `${wanted}-${number}`
    if (!taken.has(name)) return name
  }
}
