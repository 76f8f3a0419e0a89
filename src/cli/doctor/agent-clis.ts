/** The agent CLIs that Molecule knows: the program, its backend, who pays for it, and how to install it and log in. */
import type { Environment } from '../terminal/terminal.ts'
import {
  claudeLoginFiles,
  claudePayer,
  codexLoginFiles,
  codexMissingKey,
  codexPayer,
  geminiLoginFiles,
  geminiPayer,
  hermesLoginFiles,
  hermesPayer,
  openclawLoginFiles,
  openclawPayer,
  opencodeLoginFiles,
  opencodePayer,
  type Payer,
} from './payers.ts'

/** How long a program may take to say what it supports. */
export const VALIDATE_TIMEOUT_MS = 60_000

export interface AgentCli {
  /** Name of the program. */
  readonly bin: string
  /** The backend that runs it. */
  readonly backend: string
  readonly payer: Payer
  /** The files in which the CLI keeps its log-in or its choice of one. */
  readonly loginFiles: (env: Environment) => readonly string[]
  readonly install: string
  readonly login: string
  /** What is missing, where the CLI's own settings ask for something else than `login`. */
  readonly missing?: Payer
}

export const AGENT_CLIS: readonly AgentCli[] = [
  {
    bin: 'claude',
    backend: 'claude-code',
    payer: claudePayer,
    loginFiles: claudeLoginFiles,
    install: 'npm install -g @anthropic-ai/claude-code',
    login: 'run "claude" and log in, or set ANTHROPIC_API_KEY',
  },
  {
    bin: 'codex',
    backend: 'codex',
    payer: codexPayer,
    loginFiles: codexLoginFiles,
    install: 'npm install -g @openai/codex',
    login: 'run "codex login", or set CODEX_API_KEY or OPENAI_API_KEY',
    missing: codexMissingKey,
  },
  {
    bin: 'gemini',
    backend: 'gemini',
    payer: geminiPayer,
    loginFiles: geminiLoginFiles,
    install: 'npm install -g @google/gemini-cli',
    login: 'run "gemini" and log in, or set GEMINI_API_KEY',
  },
  {
    bin: 'opencode',
    backend: 'opencode',
    payer: opencodePayer,
    loginFiles: opencodeLoginFiles,
    install: 'npm install -g opencode-ai',
    login: 'run "opencode auth login"',
  },
  {
    bin: 'hermes',
    backend: 'hermes',
    payer: hermesPayer,
    loginFiles: hermesLoginFiles,
    install: 'see https://hermes-agent.nousresearch.com',
    login: 'run "hermes setup"',
  },
  {
    bin: 'openclaw',
    backend: 'openclaw',
    payer: openclawPayer,
    loginFiles: openclawLoginFiles,
    install: 'npm install -g openclaw',
    login: 'run "openclaw onboard"',
  },
]

/** What the owner can do so that the CLI has a log-in. */
export const loginRemedy = ({ login, missing }: AgentCli, env: Environment): string => missing?.(env) ?? login
