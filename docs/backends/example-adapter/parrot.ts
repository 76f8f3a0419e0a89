/**
 * A backend as somebody else would write it: says what it hears, word by word. Copy the folder to
 * `<data-dir>/adapters/parrot`, start Molecule, and make a workspace with the runtime `parrot`.
 * Only types are imported, so that it needs nothing of ours when it runs.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Backend, BackendDefinition, BackendEvent, Turn } from 'molecule/backend'

export const backend: BackendDefinition = {
  name: 'parrot',
  summary: 'says what it hears, word by word',
  options: {
    pause: 'milliseconds between two words (0)',
    mood: 'grumpy: it refuses to answer (kind)',
  },
  // It could say so if it used tools; it uses none.
  reportsTools: true,
  // No model is asked: max_turns_per_hour does not count its turns.
  isFree: true,
  create(options) {
    const pauseMs = Number(options.get('pause', '0'))
    if (!(pauseMs >= 0)) throw new Error('option "pause" must be a number of milliseconds')
    return createParrot(pauseMs, options.get('mood', 'kind') === 'grumpy')
  },
}

/** Optional. Called once at start, before any workspace uses it; what it throws is reported, and the adapter skipped. */
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

interface Manner {
  readonly pauseMs: number
  readonly isGrumpy: boolean
}

/** Never throws for what can be expected: it ends in exactly one `done` or `failed`. */
async function* speak(turn: Turn, { pauseMs, isGrumpy }: Manner, signal: AbortSignal): AsyncGenerator<BackendEvent> {
  if (isGrumpy) return yield failed('agent_failed', 'not today')
  const text = turn.request.parts.map((part) => part.text ?? '').join('')
  for (const delta of text.match(/\S*\s*/g) ?? []) {
    if (pauseMs > 0) await delay(pauseMs, undefined, { signal }).catch(() => undefined)
    if (signal.aborted) return yield failed('canceled', 'somebody cancelled it')
    if (delta !== '') yield { type: 'text', delta }
  }
  if (signal.aborted) return yield failed('canceled', 'somebody cancelled it')
  yield { type: 'done', parts: [{ text }], finality: 'completed' }
}

/** An error of any class will do; `code`, `retryable` and `details` of it are understood. */
function failed(code: string, message: string): BackendEvent {
  return { type: 'failed', error: Object.assign(new Error(message), { code, retryable: false }) as never }
}
