/**
 * Yields the last lines of a file, then the lines that are added to it. The log is rotated by a rename: when the name
 * belongs to another file, this reads the old file to its end first, then the new one from its beginning.
 */
import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs'
import { type Clock, systemClock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import { sleep } from '../../wait.ts'

const POLL_MS = 250
const CHUNK_BYTES = 65_536
/** The last lines are looked for in this much of the end of the file; older lines are not found. */
const TAIL_BYTES_MAX = 4 * 1024 * 1024

export interface TailFileOptions {
  readonly count: number
  readonly follow: boolean
  readonly signal: AbortSignal
  readonly clock?: Clock
}

export async function* tailFile(path: string, options: TailFileOptions): AsyncIterable<string> {
  const { count, follow, signal, clock = systemClock } = options
  let descriptor = openLog(path)
  const decoder = new TextDecoder()
  try {
    const { size } = fstatSync(descriptor)
    let position = Math.max(0, size - TAIL_BYTES_MAX)
    let partialLine = ''
    const read = (): string[] => {
      const chunk = Buffer.alloc(CHUNK_BYTES)
      for (let bytes = -1; bytes !== 0; position += bytes) {
        bytes = readSync(descriptor, chunk, 0, CHUNK_BYTES, position)
        partialLine += decoder.decode(chunk.subarray(0, bytes), { stream: true })
      }
      const lines = partialLine.split('\n')
      partialLine = lines.pop() ?? ''
      return lines.filter((line) => line !== '')
    }
    yield* read().slice(-count)
    while (follow && !signal.aborted) {
      await sleep(clock, POLL_MS, signal)
      yield* read()
      if (!isRotated(path, descriptor)) continue
      yield* read()
      closeSync(descriptor)
      descriptor = openLog(path)
      position = 0
      partialLine = ''
    }
  } finally {
    closeSync(descriptor)
  }
}

function openLog(path: string): number {
  try {
    return openSync(path, 'r')
  } catch (cause) {
    const message = `there is no log at ${path}; does the platform run on this machine, and is MOLECULE_HOME its data folder?`
    throw new MoleculeError('not_found', message, { cause })
  }
}

/** Between the rename and the creation of the new file the name is free: then the old file is still read. */
function isRotated(path: string, descriptor: number): boolean {
  const named = statSync(path, { throwIfNoEntry: false })
  return named !== undefined && named.ino !== fstatSync(descriptor).ino
}
