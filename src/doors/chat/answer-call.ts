/** Runs a command or a press of a button, and says when it failed. */
import { toMoleculeError } from '../../errors.ts'
import type { Log } from '../../log.ts'

/**
 * Never rejects: the person tries again. A rejection would end the platform where the channel does not wait for it, and
 * Telegram would get the same update for ever, before all later messages.
 */
export async function answerCall(
  call: { answer(text: string): Promise<void> },
  run: () => Promise<void>,
  log: Log,
): Promise<void> {
  try {
    await run()
  } catch (error) {
    // Only the text: an error of a service may contain the secret address of the answer.
    log.warn({ problem: toMoleculeError(error).message }, 'a command or a button of a chat failed')
    await call.answer('That failed unexpectedly. Try again.').catch(() => undefined)
  }
}

/** Never rejects either. Nothing answers a reaction: the person sees that nothing happened. */
export async function runQuietly(run: () => Promise<void>, log: Log): Promise<void> {
  await run().catch((error: unknown) =>
    log.warn({ problem: toMoleculeError(error).message }, 'a reaction of a chat could not be handled'),
  )
}
