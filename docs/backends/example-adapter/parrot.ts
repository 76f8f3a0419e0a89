/**
 * An example adapter: a backend that repeats each message, word by word. Copy the folder to
 * `<data-dir>/adapters/parrot`, start Molecule, and create a workspace with the runtime `parrot`.
 * It imports only types of Molecule, so it needs no other file when it runs.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Backend, BackendDefinition, BackendEvent, Turn } from 'molecule/backend'

export const backend: BackendDefinition = {
  name: 'parrot',
  summary: 'repeats each message, word by word',
  options: {
    pause: 'milliseconds between two words (0)',
    mood: 'grumpy: it refuses to answer (kind)',
  },
  // It would report tool use; it uses no tools.
  reportsTools: true,
  // It calls no model, so max_turns_per_hour does not count its turns.
  isFree: true,
  create(options) {
    const pauseMs = Number(options.get('pause', '0'))
    if (!(pauseMs >= 0)) throw new Error('option "pause" must be a number of milliseconds')
    return createParrot(pauseMs, options.get('mood', 'kind') === 'grumpy')
  },
}

/** Optional. Called once at start, before any workspace uses the adapter. If it throws, the adapter is skipped. */
export async function setup(): Promise<void> {
  await delay(1)
}

function createParrot(pauseMs: number, isGrumpy: boolean): Backend {
  const closing = new AbortController()
  return {
    name: backend.name,
    validate: async () => ({ ok: true }),
    run: (turn, signal) => speak(turn, { pauseMs, isGrumpy }, AbortSignal.any([signal, closing.signal])),
    async close() {
      closing.abort()
    },
  }
}

/** Never throws for an expected failure: it ends in exactly one `done` or `failed`. */
async function* speak(
  turn: Turn,
  { pauseMs, isGrumpy }: { pauseMs: number; isGrumpy: boolean },
  signal: AbortSignal,
): AsyncGenerator<BackendEvent> {
  if (isGrumpy) return yield failed('agent_failed', 'not today')
  const text = turn.request.parts.map((part) => part.text ?? '').join('')
  for (const delta of text.match(/\S*\s*/g) ?? []) {
    if (pauseMs > 0) await delay(pauseMs, undefined, { signal }).catch(() => undefined)
    if (signal.aborted) return yield failed('canceled', 'the turn was cancelled')
    if (delta !== '') yield { type: 'text', delta }
  }
  if (signal.aborted) return yield failed('canceled', 'the turn was cancelled')
  yield { type: 'done', parts: [{ text }], finality: 'completed' }
}

/** The error may be of any class. Molecule reads its `code`, `retryable` and `details`. */
function failed(code: string, message: string): BackendEvent {
  return { type: 'failed', error: Object.assign(new Error(message), { code, retryable: false }) as never }
}
