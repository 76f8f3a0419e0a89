/** Whether the platform takes work. */
import { MoleculeError } from '../errors.ts'
import type { ApiClient } from './api-client.ts'

/** The platform answers 503 where it takes no work, with the reason. Throws where it cannot be reached. */
export async function readReadiness(client: ApiClient): Promise<{ readonly ready: boolean; readonly reason?: string }> {
  try {
    await client.call('GET /ready')
    return { ready: true }
  } catch (thrown) {
    if (thrown instanceof MoleculeError && thrown.details['status'] === 503) {
      return { ready: false, reason: thrown.message }
    }
    throw thrown
  }
}
