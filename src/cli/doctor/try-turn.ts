/**
 * One real turn of an agent, the only way to know whether its provider lets it in, and whether what it prints in a turn
 * reads as its backend expects. It asks the model for one word, so it is done only when somebody asks for it.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Backend, Turn } from '../../backends/backend.ts'
import { collectResponse } from '../../backends/collect-response.ts'
import { toMoleculeError } from '../../errors.ts'
import { ulid } from '../../ids.ts'
import { joinText } from '../../protocol/request.ts'

const PROMPT = 'Answer with the single word ok.'
const TRY_TURN_TIMEOUT_MS = 120_000

export interface TurnTrial {
  /** What it printed was understood. */
  readonly understood: boolean
  /** Whether its provider let it in; undefined where that could not be seen. */
  readonly loggedIn: boolean | undefined
  readonly text: string
}

export async function tryTurn(backend: Backend, signal: AbortSignal): Promise<TurnTrial> {
  const workingDir = mkdtempSync(join(tmpdir(), 'molecule-probe-'))
  try {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(TRY_TURN_TIMEOUT_MS)])
    const { parts } = await collectResponse(backend.run(makeTurn(workingDir), limited))
    const understood = joinText(parts).trim() !== ''
    return { understood, loggedIn: understood, text: understood ? 'it answers' : 'its answer was empty' }
  } catch (thrown) {
    const { code, message } = toMoleculeError(thrown)
    // Both are the provider's words, as the backend understood them.
    if (code === 'auth_failed')
      return { understood: true, loggedIn: false, text: 'its provider refuses its credentials' }
    if (code === 'rate_limited') return { understood: true, loggedIn: true, text: 'its provider asks to wait' }
    return { understood: false, loggedIn: undefined, text: `a try failed: ${message}` }
  } finally {
    rmSync(workingDir, { recursive: true, force: true })
  }
}

function makeTurn(workingDir: string): Turn {
  const id = ulid()
  return {
    ...{ id, messageId: id, conversationId: id, prompt: PROMPT, systemPrompt: '', workingDir },
    ...{ mcpServers: [], notes: {}, env: {} },
    ask: async () => 'denied',
    request: {
      ...{ workspace_id: 'doctor', caller_id: '', message_id: id, idempotency_key: id, task_id: id, context_id: id },
      parts: [{ type: 'text', text: PROMPT }],
      method: 'SendMessage',
      sender: { kind: 'program', id: 'doctor', name: 'doctor', door: 'cli' },
      raw: { jsonrpc: '2.0', id, method: 'SendMessage' },
    },
  }
}
