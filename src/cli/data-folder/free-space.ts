/**
 * The floor of free disk space. Below it new messages are refused with 507, and running turns finish: their replies need
 * the space that is left. Without the floor the disk fills up completely, and nothing can be stored any more.
 */
import { statfs } from 'node:fs/promises'
import type { Clock } from '../../clock.ts'
import { MoleculeError, toMoleculeError } from '../../errors.ts'
import type { Reception } from '../../inbox/reception.ts'
import type { Log } from '../../log.ts'

/** How often the disk is asked; a caller never waits for it. */
const CHECK_MS = 5000
const RETRY_AFTER_MS = 60_000
const MIB = 1024 * 1024

export interface FreeSpaceOptions {
  readonly dataDir: string
  /** 0 turns the floor off. */
  readonly bytesMin: number
  readonly clock: Clock
  readonly log: Log
  /** The free bytes of the disk, undefined where the system does not know; replaced in tests. */
  readonly freeBytes?: (path: string) => Promise<number | undefined>
}

export interface FreeSpace {
  /** One sentence while there is too little space. */
  reason(): string | undefined
  /** The reception, with admission refused while there is too little space. */
  guard(reception: Reception): Reception
  stop(): void
}

/** Resolves after the first look at the disk. */
export async function watchFreeSpace(options: FreeSpaceOptions): Promise<FreeSpace> {
  const { dataDir, bytesMin, clock, log, freeBytes = askDisk } = options
  let reason: string | undefined
  let cancel: () => void = () => undefined
  let stopped = false
  const check = async () => {
    const free = await freeBytes(dataDir)
    const isLow = free !== undefined && free < bytesMin
    if (isLow && reason === undefined) {
      log.warn({ dataDir, free, bytesMin }, 'the disk is nearly full: new messages are refused, running turns finish')
    }
    if (!isLow && reason !== undefined) log.info({ dataDir, free }, 'there is space on the disk again')
    reason = isLow ? `the disk of the platform has less than ${Math.ceil(bytesMin / MIB)} MiB free` : undefined
  }
  const checkAgain = () => {
    cancel = clock.after(CHECK_MS, () => {
      check()
        .catch((error: unknown) => log.warn({ err: toMoleculeError(error) }, 'the free space could not be read'))
        .finally(() => stopped || checkAgain())
    })
  }
  if (bytesMin > 0) {
    await check()
    checkAgain()
  }
  const requireSpace = () => {
    if (reason === undefined) return
    const details = { retryAfterMs: RETRY_AFTER_MS }
    throw new MoleculeError('disk_low', `${reason}; it takes no new messages`, { retryable: true, details })
  }
  return {
    reason: () => reason,
    guard: (reception) => ({
      ...reception,
      async admit(letter) {
        requireSpace()
        return await reception.admit(letter)
      },
      async send(letter, sendOptions, signal) {
        requireSpace()
        return await reception.send(letter, sendOptions, signal)
      },
    }),
    stop() {
      stopped = true
      cancel()
    },
  }
}

/** Some file systems report no size at all; then nothing is known. */
async function askDisk(path: string): Promise<number | undefined> {
  const { bavail, bsize, blocks } = await statfs(path)
  return blocks === 0 ? undefined : bavail * bsize
}
