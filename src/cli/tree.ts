/**
 * The tree of the `molecule` command as data: the options that every command takes, and the commands, each with a line
 * about it and the file that defines what stands below. Nothing is loaded before it is named, so that help is quick.
 */
import type { DefineCommand } from './command-context.ts'

export const DESCRIPTION =
  'Gives every command-line agent an address: durable workspaces that people, programs and agents talk to.'

export const GLOBAL_OPTIONS: readonly (readonly [flags: string, text: string])[] = [
  ['-o, --output <format>', 'table, json or yaml (table; MOLECULE_OUTPUT)'],
  ['--api-url <url>', 'where the platform is (http://localhost:8080; MOLECULE_API_URL)'],
  ['-v, --verbose', 'show where an error came from, and the whole log on stderr'],
]

export const VERSION_OPTION = ['--version', 'print the version'] as const
export const HELP_OPTION = ['-h, --help', 'show help'] as const

export interface CommandEntry {
  readonly name: string
  readonly summary: string
  readonly load: () => Promise<{ readonly define: DefineCommand }>
  /** For shells, not for people. */
  readonly hidden?: boolean
}

export const COMMANDS: readonly CommandEntry[] = [
  { name: 'up', summary: 'start the platform in this terminal', load: () => import('./commands/up.ts') },
  {
    name: 'connect',
    summary: 'run the messages of a workspace with the agent on this machine',
    load: () => import('./commands/connect.ts'),
  },
  {
    name: 'init',
    summary: 'make a first workspace of an agent on this machine',
    load: () => import('./commands/init.ts'),
  },
  {
    name: 'workspace',
    summary: 'list, create, inspect, delete, restart, pause, resume, delegate',
    load: () => import('./commands/workspace.ts'),
  },
  {
    name: 'agent',
    summary: 'who is there, and talking to them: list, send, peers',
    load: () => import('./commands/agent.ts'),
  },
  { name: 'chat', summary: 'talk to a workspace in this terminal', load: () => import('./commands/chat.ts') },
  {
    name: 'pending',
    summary: 'what agents ask permission for: list, allow, deny',
    load: () => import('./commands/pending.ts'),
  },
  {
    name: 'stop',
    summary: 'end the turns that run and begin no more, of one workspace or of all',
    load: () => import('./commands/stop.ts'),
  },
  { name: 'explain', summary: 'tell what became of a message', load: () => import('./commands/explain.ts') },
  {
    name: 'logs',
    summary: 'show the log of the platform, or what happened in a workspace',
    load: () => import('./commands/logs.ts'),
  },
  {
    name: 'status',
    summary: 'say what a workspace is doing; it shows on its card',
    load: () => import('./commands/status.ts'),
  },
  { name: 'platform', summary: 'how the platform does: health', load: () => import('./commands/platform.ts') },
  { name: 'doctor', summary: 'look for what is wrong on this machine', load: () => import('./commands/doctor.ts') },
  {
    name: 'config',
    summary: 'settings of this data folder: list, get, set',
    load: () => import('./commands/config.ts'),
  },
  {
    name: 'completion',
    summary: 'print the completion script of a shell',
    load: () => import('./commands/completion.ts'),
  },
  { name: 'complete', summary: 'candidates for a shell', load: () => import('./commands/complete.ts'), hidden: true },
]
