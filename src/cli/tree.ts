/**
 * The tree of the `molecule` command as data: the options of every command, and the commands, each with its summary and
 * the file that defines its arguments. That file is loaded only when the command is named, so that help is fast.
 */
import { flagsOf, GLOBAL_SETTINGS, helpOf } from '../config/settings.ts'
import type { DefineCommand } from './command-context.ts'

export const DESCRIPTION =
  'Gives every command-line agent an address: durable workspaces that people, programs and agents talk to.'

export const GLOBAL_OPTIONS: readonly (readonly [flags: string, text: string])[] = GLOBAL_SETTINGS.map((setting) => [
  flagsOf(setting),
  helpOf(setting),
])

export const VERSION_OPTION = ['--version', 'print the version'] as const
export const HELP_OPTION = ['-h, --help', 'show help'] as const

export interface CommandEntry {
  readonly name: string
  readonly summary: string
  readonly load: () => Promise<{ readonly define: DefineCommand }>
  /** Called by shell completion, so not listed in help. */
  readonly hidden?: boolean
}

export const COMMANDS: readonly CommandEntry[] = [
  { name: 'up', summary: 'start the platform in this terminal', load: () => import('./commands/platform/up.ts') },
  {
    name: 'down',
    summary: 'stop the platform of this data folder; running turns finish first',
    load: () => import('./commands/platform/down.ts'),
  },
  {
    name: 'connect',
    summary: 'run the messages of a workspace with an agent on this machine',
    load: () => import('./commands/platform/connect.ts'),
  },
  {
    name: 'init',
    summary: 'create a first workspace for an agent on this machine',
    load: () => import('./commands/platform/init.ts'),
  },
  {
    name: 'open',
    summary: 'log a browser in: make a new link and open it',
    load: () => import('./commands/platform/open.ts'),
  },
  {
    name: 'login',
    summary: 'print a new link that logs a browser in, once',
    load: async () => ({ define: (await import('./commands/platform/open.ts')).defineLogin }),
  },
  {
    name: 'workspace',
    summary: 'list, create, inspect, set, rename, connect-command, delete, restart, pause, resume, delegate',
    load: () => import('./commands/workspaces/workspace.ts'),
  },
  {
    name: 'apply',
    summary: 'make the workspaces of a team equal to a file',
    load: () => import('./commands/workspaces/apply.ts'),
  },
  {
    name: 'export',
    summary: 'write workspaces as a team file, for "apply"',
    load: () => import('./commands/workspaces/export.ts'),
  },
  {
    name: 'agent',
    summary: 'list the agents and send them messages: list, send, peers',
    load: () => import('./commands/messages/agent.ts'),
  },
  {
    name: 'task',
    summary: 'find the tasks that messages became: list, show, cancel',
    load: () => import('./commands/messages/task.ts'),
  },
  { name: 'chat', summary: 'talk to a workspace in this terminal', load: () => import('./commands/messages/chat.ts') },
  {
    name: 'pending',
    summary:
      'what waits for you: list, show, and answer it: allow, deny, answer, raise, stop, replay, discard, resume, arrived, resend, approve, refuse, more, check',
    load: () => import('./commands/messages/pending.ts'),
  },
  {
    name: 'rules',
    summary: 'what agents may always do without asking: list, revoke',
    load: () => import('./commands/workspaces/rules.ts'),
  },
  {
    name: 'memory',
    summary: 'what a workspace remembers: list, search, add, forget',
    load: () => import('./commands/workspaces/memory.ts'),
  },
  {
    name: 'schedule',
    summary: 'send messages at times: add, list, pause, resume, run, remove',
    load: () => import('./commands/workspaces/schedule.ts'),
  },
  {
    name: 'channel',
    summary: 'bots of chat services: add, list, remove, bind, unbind',
    load: () => import('./commands/platform/channel.ts'),
  },
  {
    name: 'pair',
    summary: 'who may talk to the bots: list, approve, deny',
    load: () => import('./commands/platform/pair.ts'),
  },
  {
    name: 'gateway',
    summary: 'a chat bot in front of one agent, set up by environment variables alone',
    load: () => import('./commands/platform/gateway.ts'),
  },
  {
    name: 'mcp',
    summary: 'serve the MCP tools of a workspace on stdin and stdout',
    load: () => import('./commands/workspaces/mcp.ts'),
  },
  {
    name: 'stop',
    summary: 'cancel the running messages and start no new ones, in one workspace or in all',
    load: () => import('./commands/workspaces/stop.ts'),
  },
  {
    name: 'pause',
    summary: 'start no new turns and keep every message, in one workspace or in all',
    load: async () => ({ define: (await import('./commands/workspaces/stop.ts')).definePause }),
  },
  {
    name: 'resume',
    summary: 'start turns again after a stop or a pause, in one workspace or in all',
    load: async () => ({ define: (await import('./commands/workspaces/stop.ts')).defineResume }),
  },
  { name: 'explain', summary: 'show what happened to a message', load: () => import('./commands/messages/explain.ts') },
  {
    name: 'logs',
    summary: 'show the log of the platform, or the activity of a workspace',
    load: () => import('./commands/platform/logs.ts'),
  },
  {
    name: 'status',
    summary: 'show all workspaces and what needs you, or set the status line of a workspace',
    load: () => import('./commands/workspaces/status.ts'),
  },
  {
    name: 'usage',
    summary: 'what the turns cost, today and in the last days, of all workspaces or of one',
    load: () => import('./commands/workspaces/usage.ts'),
  },
  {
    name: 'token',
    summary: 'who may use the platform: list, create, revoke tokens and browser sessions',
    load: () => import('./commands/platform/token.ts'),
  },
  { name: 'platform', summary: 'check the platform: health', load: () => import('./commands/platform/platform.ts') },
  {
    name: 'doctor',
    summary: 'find what is wrong on this machine',
    load: () => import('./commands/platform/doctor.ts'),
  },
  {
    name: 'config',
    summary: 'settings in this data folder: list, get, set',
    load: () => import('./commands/platform/config.ts'),
  },
  {
    name: 'completion',
    summary: 'print the completion script of a shell',
    load: () => import('./commands/platform/completion.ts'),
  },
  {
    name: 'complete',
    summary: 'print completions for a shell',
    load: () => import('./commands/platform/complete.ts'),
    hidden: true,
  },
]
