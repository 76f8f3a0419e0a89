/** What a data or state folder is called in sessions, leases and process marks; made once, and never anybody else's. */
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
