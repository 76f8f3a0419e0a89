/** Files that a person adds to a message, with the limits of the platform, which are said before anything is sent. */
import type { Part } from '../../../../../src/protocol/a2a.ts'

/** A message is at most 8 MiB with its files as base64. */
export const FILES_BYTES_MAX = 6_000_000
export const FILES_MAX = 20

export interface ChosenFile {
  readonly key: string
  readonly file: File
}

export interface AddedFiles {
  readonly files: readonly ChosenFile[]
  /** Why a file was left out. */
  readonly problem?: string
}

let lastKey = 0

export function addFiles(before: readonly ChosenFile[], added: readonly File[]): AddedFiles {
  const files = [...before]
  let bytes = before.reduce((sum, { file }) => sum + file.size, 0)
  for (const file of added) {
    if (files.length >= FILES_MAX) {
      return { files, problem: `A message takes at most ${FILES_MAX} files. “${file.name}” was not added.` }
    }
    if (bytes + file.size > FILES_BYTES_MAX) {
      const limit = sizeText(FILES_BYTES_MAX)
      const problem = `“${file.name}” has ${sizeText(file.size)}. The files of a message have at most ${limit} together.`
      return { files, problem }
    }
    bytes += file.size
    files.push({ key: `file-${++lastKey}`, file: namedFile(file, files.length) })
  }
  return { files }
}

/** A pasted picture has no name of its own, or the same name as every other. */
function namedFile(file: File, index: number): File {
  if (file.name !== '' && file.name !== 'image.png') return file
  const extension = file.type.split('/')[1]?.replace(/[^a-z0-9]/g, '') || 'bin'
  return new File([file], `pasted-${index + 1}.${extension}`, { type: file.type })
}

/** `820 B`, `14 kB`, `2.4 MB`. */
export function sizeText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  if (bytes < 1_000_000) return `${Math.round(bytes / 1000)} kB`
  return `${(bytes / 1_000_000).toFixed(1).replace(/\.0$/, '')} MB`
}

/** The parts of a message: its text, then its files as base64. */
export async function toParts(text: string, files: readonly ChosenFile[]): Promise<Part[]> {
  const contents = await Promise.all(files.map(({ file }) => readBase64(file)))
  return [
    ...(text === '' ? [] : [{ text }]),
    ...files.map(({ file }, index) => ({
      raw: contents[index] ?? '',
      filename: file.name,
      mediaType: file.type || 'application/octet-stream',
    })),
  ]
}

function readBase64(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ''))
    reader.onerror = () => reject(reader.error)
    reader.readAsDataURL(file)
  })
}
