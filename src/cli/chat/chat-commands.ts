/**
 * What a typed line means in a chat: a command such as `/model opus`, files alone, or a message. A line that begins with
 * `//` is a message that begins with `/`, for agents that have commands of their own.
 */
import { resolve } from 'node:path'
import type { PlatformClient } from '../../client/platform-client.ts'
import { changeWorkspace } from '../../client/workspaces.ts'
import { droppedPaths } from '../files/dropped-paths.ts'
import { type SaveOptions, saveAnswerFiles } from '../files/save-files.ts'
import { workspaceStatusText } from '../terminal/task-text.ts'
import type { ChatConversation } from './conversation.ts'
import type { ExpandedLine } from './pasted-input.ts'

const COMMANDS = {
  help: 'show these commands',
  new: 'start a new conversation',
  stop: 'stop the running turn, as Ctrl-C does',
  model: 'show the model of the workspace; "/model NAME" changes it, "/model default" removes it',
  where: 'show the workspace, the conversation, the platform and where files are saved',
  files: 'list the files of this conversation, and save those that are not saved yet',
  quit: 'leave, as Ctrl-D does; a running task continues',
} as const

export type ChatCommand = keyof typeof COMMANDS

export type LineMeaning =
  | { readonly type: 'nothing' }
  | { readonly type: 'command'; readonly name: ChatCommand; readonly argument: string }
  | { readonly type: 'unknown'; readonly name: string }
  | ({ readonly type: 'message' } & ExpandedLine)
  /** Files alone: they wait for their question. */
  | { readonly type: 'files'; readonly files: readonly string[] }

export function readLine(line: string, expand: (line: string) => ExpandedLine): LineMeaning {
  const typed = line.trim()
  if (typed === '') return { type: 'nothing' }
  const [, name, argument = ''] = /^\/([a-z]+)(?:\s+(.*))?$/is.exec(typed) ?? []
  const command = name === 'exit' ? 'quit' : name
  if (command !== undefined && isCommand(command)) return { type: 'command', name: command, argument: argument.trim() }
  const paths = droppedPaths(typed)
  if (paths !== undefined) return { type: 'files', files: paths }
  if (name !== undefined) return { type: 'unknown', name }
  const { text, files, isFilesAlone } = expand(line.startsWith('//') ? line.slice(1) : line)
  if (isFilesAlone) return { type: 'files', files }
  // A dropped file ends with a space.
  return { type: 'message', text: text.trimEnd(), files, isFilesAlone }
}

const isCommand = (name: string): name is ChatCommand => Object.hasOwn(COMMANDS, name)

export const HELP: readonly string[] = [
  ...Object.entries(COMMANDS).map(([name, text]) => `/${name}: ${text}`),
  'Drop a file on the terminal, or type its path alone, to attach it to your next message.',
  '//text sends "/text" to the agent.',
]

export interface ChatPlace extends SaveOptions {
  readonly client: Pick<PlatformClient, 'call'>
  readonly workspaceId: string
  /** URL of the platform. */
  readonly apiUrl: string
}

/** Shows or changes the model; a sentence about it. */
export async function runModelCommand({ client, workspaceId }: ChatPlace, argument: string): Promise<string> {
  if (argument === '') {
    const { model, runtime, name } = await client.call('GET /workspaces/{id}', { id: workspaceId })
    return model === undefined ? `${name} uses the default model of ${runtime}` : `${name} uses the model ${model}`
  }
  const changed = await changeWorkspace(client, workspaceId, { model: argument === 'default' ? null : argument })
  const { model, runtime, name } = changed
  const now = model === undefined ? `the default model of ${runtime}` : `the model ${model}`
  return `${name} uses ${now} from its next turn on, in every conversation`
}

/** The lines that `/where` shows. */
export async function describePlace(place: ChatPlace, contextId: string): Promise<string[]> {
  const {
    id,
    name,
    runtime,
    status,
    status_reason: reason,
    working_dir: folder,
  } = await place.client.call('GET /workspaces/{id}', { id: place.workspaceId })
  return [
    `workspace ${name} (${id}), ${runtime}, ${workspaceStatusText(status)}${reason ? ` (${reason})` : ''}`,
    ...(folder === undefined ? [] : [`its folder ${folder}`]),
    `conversation ${contextId}`,
    `platform ${place.apiUrl}`,
    place.saveFolder === false
      ? 'files of answers are not saved'
      : `files of answers go to ${resolve(place.saveFolder)}`,
  ]
}

/** The lines that `/files` shows. */
export async function listFiles(conversation: ChatConversation, options: SaveOptions): Promise<string[]> {
  const lines: string[] = []
  for (const task of await conversation.tasks()) {
    for (const { parts } of task.history ?? []) {
      for (const { raw, filename } of parts) if (raw !== undefined) lines.push(`you attached ${filename ?? 'a file'}`)
    }
    lines.push(...(await saveAnswerFiles(task, options)))
  }
  return lines.length > 0 ? lines : ['this conversation has no files']
}
