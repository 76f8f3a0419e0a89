/**
 * Saves the files of an answer into a folder of this machine. Invariant: no file that is there is ever changed. A file
 * whose name is taken gets a number, and one that is there with the same content is not written again.
 */
import { lstat, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { isAbsolute, join, relative, resolve } from 'node:path'
import { MoleculeError } from '../../errors.ts'
import type { Part, Task } from '../../protocol/a2a.ts'
import { extensionOf, numberedFileName, safeFileName } from '../../protocol/file-name.ts'
import { formatBytes } from '../terminal/output.ts'

/** A folder of its own below the current one: an agent chooses the names of its files. */
export const SAVE_FOLDER = 'molecule-files'
/** Names tried for one file. */
const NUMBERS_MAX = 1000

export interface AnswerFile {
  readonly name: string
  readonly content: Buffer
}

/** The files of a task's answer, and the URLs that it names in place of a file. */
export function answerFilesOf({ artifacts = [] }: Task): { files: AnswerFile[]; links: string[] } {
  const files: AnswerFile[] = []
  const links: string[] = []
  for (const artifact of artifacts) {
    for (const part of artifact.parts) {
      const content = contentOf(part)
      if (part.url !== undefined) links.push(part.url)
      if (content === undefined) continue
      const fallback = `file${extensionOf(part.mediaType)}`
      files.push({ name: safeFileName(part.filename ?? artifact.name, fallback), content })
    }
  }
  return { files, links }
}

/** Text and data without a file name are a part of the answer itself. */
function contentOf({ raw, text, data, filename }: Part): Buffer | undefined {
  if (raw !== undefined) return Buffer.from(raw, 'base64')
  if (filename === undefined) return undefined
  if (text !== undefined) return Buffer.from(text)
  return data === undefined ? undefined : Buffer.from(`${JSON.stringify(data, null, 2)}\n`)
}

interface SavedFile {
  /** Absolute. */
  readonly path: string
  readonly bytes: number
  /** False: the same file was there already. */
  readonly isNew: boolean
}

export interface SaveOptions {
  /** False = the files are named and not saved. */
  readonly saveFolder: string | false
  /** How a person calls `molecule` here. */
  readonly command: string
}

/** Saves the files of a task's answer; a line for each file and link. Throws one sentence that says what to do. */
export async function saveAnswerFiles(task: Task, { saveFolder, command }: SaveOptions): Promise<string[]> {
  const { files, links } = answerFilesOf(task)
  const linkLines = links.map((link) => `link ${link}`)
  if (saveFolder === false) return [...files.map(({ name }) => `file ${name}, not saved`), ...linkLines]
  try {
    return [...(await saveFiles(files, saveFolder)).map(savedText), ...linkLines]
  } catch (cause) {
    const advice = `"${command} task show ${task.id} --save FOLDER" saves it elsewhere`
    throw new MoleculeError('unsupported_operation', `${(cause as Error).message}; ${advice}`, { cause })
  }
}

/** Throws the name of the file that could not be saved; the files before it stay saved. */
async function saveFiles(files: readonly AnswerFile[], folder: string): Promise<SavedFile[]> {
  const saved: SavedFile[] = []
  for (const file of files) {
    try {
      await mkdir(folder, { recursive: true })
      saved.push(await saveFile(file, resolve(folder)))
    } catch (cause) {
      const reason = (cause as NodeJS.ErrnoException).code ?? (cause as Error).message
      throw new Error(`${file.name} could not be saved in ${folder} (${reason})`, { cause })
    }
  }
  return saved
}

async function saveFile({ name, content }: AnswerFile, folder: string): Promise<SavedFile> {
  for (let number = 1; number <= NUMBERS_MAX; number++) {
    const path = join(folder, number === 1 ? name : numberedFileName(name, number))
    if (await writeNew(path, content)) return { path, bytes: content.length, isNew: true }
    if (await hasContent(path, content)) return { path, bytes: content.length, isNew: false }
  }
  throw new Error(`${NUMBERS_MAX} files have this name`)
}

/** False when something is there already. */
async function writeNew(path: string, content: Buffer): Promise<boolean> {
  try {
    // "wx" follows no link and replaces nothing.
    await writeFile(path, content, { flag: 'wx' })
    return true
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'EEXIST') return false
    // Half a file must not look like a saved one.
    await rm(path, { force: true })
    throw thrown
  }
}

async function hasContent(path: string, content: Buffer): Promise<boolean> {
  const stats = await lstat(path)
  return stats.isFile() && stats.size === content.length && content.equals(await readFile(path))
}

/** `saved molecule-files/report.pdf (12 KB)`. */
function savedText({ path, bytes, isNew }: SavedFile): string {
  const here = relative(process.cwd(), path)
  const shown = here.startsWith('..') || isAbsolute(here) ? path : here
  return `${isNew ? 'saved' : 'already saved as'} ${shown} (${formatBytes(bytes)})`
}
