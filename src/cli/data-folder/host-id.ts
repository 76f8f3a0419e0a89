/** The unique id of a data or state folder, created once. Sessions, leases and process marks carry it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ulid } from '../../ids.ts'
import { writeFileAtomically } from './data-folder.ts'

export function ensureHostId(folder: string): string {
  const path = join(folder, 'host-id')
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    const id = ulid()
    writeFileAtomically(path, `${id}\n`)
    return id
  }
}
