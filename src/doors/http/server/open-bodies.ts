/**
 * Counts the bodies that have begun to arrive and are not complete: how many and how many bytes, for each owner (a token,
 * or the address of a caller without one) and in all. Prevents unbounded memory: sixty bodies that one caller never
 * finishes held 484 MB.
 * Invariant: bytes count when they arrive, never when they are announced, so an announcement blocks no other caller.
 */
import { MoleculeError } from '../../../errors.ts'

/** Past a limit the body is refused with `too_many_requests`; a body that ends or is cut gives its share back. */
export interface OpenBodyLimits {
  readonly perOwnerMax: number
  readonly perOwnerBytesMax: number
  readonly inAllMax: number
  readonly inAllBytesMax: number
  /** The limit of bytes in all does not count a body up to this size: a few large bodies must not stop small messages. */
  readonly smallBytesMax: number
}

const OPEN_BODY_LIMITS: OpenBodyLimits = {
  perOwnerMax: 256,
  perOwnerBytesMax: 64 * 1024 * 1024,
  inAllMax: 2048,
  inAllBytesMax: 256 * 1024 * 1024,
  smallBytesMax: 32 * 1024,
}

const RETRY_AFTER_MS = 2000

export interface OpenBody {
  /** Bytes have arrived. Throws `too_many_requests` past a limit. */
  add(bytes: number): void
  /** The body is complete, refused or cut. */
  close(): void
}

export interface OpenBodies {
  /** Throws `too_many_requests` when the owner, or all together, have too many. */
  open(owner: string): OpenBody
}

export function createOpenBodies(limits: OpenBodyLimits = OPEN_BODY_LIMITS): OpenBodies {
  const owners = new Map<string, { bodies: number; bytes: number }>()
  let bodies = 0
  let largeBytes = 0
  return {
    open(owner) {
      const own = owners.get(owner) ?? { bodies: 0, bytes: 0 }
      if (own.bodies >= limits.perOwnerMax) throw tooMany(`this caller has ${own.bodies} unfinished bodies`)
      if (bodies >= limits.inAllMax) throw tooMany('the platform reads too many unfinished bodies')
      owners.set(owner, own)
      own.bodies++
      bodies++
      let size = 0
      let large = 0
      return {
        add(bytes) {
          size += bytes
          own.bytes += bytes
          if (size > limits.smallBytesMax) {
            largeBytes += size - large
            large = size
          }
          if (own.bytes > limits.perOwnerBytesMax) {
            throw tooMany(`the unfinished bodies of this caller have more than ${limits.perOwnerBytesMax} bytes`)
          }
          if (large > 0 && largeBytes > limits.inAllBytesMax) {
            throw tooMany('the platform reads too many bytes of unfinished bodies')
          }
        },
        close() {
          own.bodies--
          own.bytes -= size
          bodies--
          largeBytes -= large
          if (own.bodies === 0) owners.delete(owner)
        },
      }
    },
  }
}

function tooMany(problem: string): MoleculeError {
  const message = `${problem}; finish some first`
  return new MoleculeError('too_many_requests', message, {
    retryable: true,
    details: { retryAfterMs: RETRY_AFTER_MS },
  })
}
