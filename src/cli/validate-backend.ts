/** Validates a backend that was built only for that, and closes it. Used by the platform and by a bridge. */
import type { Backend, Validation } from '../backends/backend.ts'

type CheckedBackend = Validation & { readonly limits: readonly string[] }

/** A backend that takes longer is treated as one that cannot run. */
const VALIDATE_TIMEOUT_MS = 10_000

export async function validateAndClose(backend: Backend): Promise<CheckedBackend> {
  try {
    const validation = await backend.validate(AbortSignal.timeout(VALIDATE_TIMEOUT_MS))
    return { ...validation, limits: backend.limits?.() ?? [] }
  } finally {
    await backend.close()
  }
}
