/** A copy of the repository in a temporary folder, for the mutation runner to change. It shares the packages. */
import { cpSync, mkdtempSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'

const NOT_COPIED = ['node_modules', '.git']

export function copyRepository(root: string): string {
  const copy = mkdtempSync(join(tmpdir(), `molecule-mutate-${process.pid}-`))
  cpSync(root, copy, { recursive: true, filter: (path) => !NOT_COPIED.includes(basename(path)) })
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'), 'junction')
  return copy
}
