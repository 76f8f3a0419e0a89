/** Tools in words, without characters that hide what they do: what a tool line says (`edited migrations/0037.sql`), and what an agent asks for. Pure. */

import type { ChatToolView } from '../../../../src/client/live-conversation.ts'
import { printable, printableName } from '../../../../src/printable.ts'

const SHELL_TOOLS = /^(bash|shell|execute|run_shell_command|terminal|exec|local_shell|command)$/i

/** Verbs for tools of files, by the names that the agents give them. */
const FILE_VERBS: readonly (readonly [RegExp, string])[] = [
  [/^(edit|multiedit|replace|apply_patch|str_replace|notebookedit)/i, 'edited'],
  [/^(write|write_file|create)/i, 'wrote'],
  [/^(read|read_file|view|open)/i, 'read'],
  [/^(grep|search|glob|find|list|ls)/i, 'searched'],
]

export interface ToolText {
  /** Shown in one line; the whole is in the details. */
  readonly line: string
  /** The whole subject, where the line does not show it. */
  readonly details?: string
}

export function toolText(tool: Pick<ChatToolView, 'name' | 'subject'>, workingDir = ''): ToolText {
  const name = printableName(tool.name)
  const subject = printable(tool.subject ?? '')
  if (subject === '') return { line: name }
  const named = nameOf(name, subject, workingDir)
  const line = (named.split('\n')[0] ?? '').trim()
  return line === subject ? { line } : { line, details: subject }
}

function nameOf(name: string, subject: string, workingDir: string): string {
  if (SHELL_TOOLS.test(name)) return subject
  const verb = FILE_VERBS.find(([pattern]) => pattern.test(name))?.[1]
  return `${verb ?? name} ${withoutFolder(fileOf(subject) ?? subject, workingDir)}`.trim()
}

/** Some agents report the input of a tool as JSON or as a diff. */
function fileOf(subject: string): string | undefined {
  if (isDiff(subject)) return /^\+\+\+ (?:b\/)?(.+)$/m.exec(subject)?.[1] ?? 'a file'
  if (!subject.startsWith('{')) return undefined
  try {
    const input = JSON.parse(subject) as Record<string, unknown>
    const path = input['file_path'] ?? input['filePath'] ?? input['notebook_path'] ?? input['path'] ?? input['pattern']
    return typeof path === 'string' ? path : undefined
  } catch {
    // Long inputs are cut and are no longer JSON.
    return undefined
  }
}

const withoutFolder = (path: string, folder: string): string =>
  folder !== '' && path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path

/** A diff in the details of a tool: it has lines that were added or removed. */
export const isDiff = (text: string): boolean => /^(@@ |--- |diff --git )/m.test(text)

/** What an agent wants to do with a tool that it asks for. */
const WISHES: readonly (readonly [RegExp, string])[] = [
  [/^(bash|shell|execute|run_shell_command|terminal|exec|local_shell)$/i, 'run a command'],
  [/^(edit|multiedit|replace|apply_patch|write|write_file|notebookedit)$/i, 'change a file'],
  [/^(read|read_file|view)$/i, 'read a file'],
  [/^(webfetch|web_fetch|fetch)$/i, 'open a web page'],
  [/^(websearch|web_search)$/i, 'search the web'],
]

export const wantsTo = (tool: string): string =>
  WISHES.find(([pattern]) => pattern.test(tool))?.[1] ?? `use ${printableName(tool)}`
