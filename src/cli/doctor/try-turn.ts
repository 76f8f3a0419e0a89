/**
 * Runs one real turn of an agent: the only way to know whether its provider accepts the log-in, and whether the backend
 * understands its output. It costs a model call, so only `doctor --probe` does it.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Backend, Turn } from '../../backends/backend.ts'
import { collectResult, type TurnResult } from '../../backends/collect-response.ts'
import { ulid } from '../../ids.ts'

const PROMPT = 'Answer with the single word ok.'
const TRY_TURN_TIMEOUT_MS = 120_000

export interface TurnTrial {
  /** The backend understood the output. */
  readonly understood: boolean
  /** Whether the provider accepted the log-in; undefined when the turn does not show it. */
  readonly loggedIn: boolean | undefined
  readonly text: string
}

export async function tryTurn(backend: Backend, signal: AbortSignal): Promise<TurnTrial> {
  const workingDir = mkdtempSync(join(tmpdir(), 'molecule-probe-'))
  try {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(TRY_TURN_TIMEOUT_MS)])
    const result = await collectResult(backend.run(makeTurn(workingDir), limited))
    return result.isError ? trialOfFailure(result) : trialOfAnswer(result)
  } finally {
    rmSync(workingDir, { recursive: true, force: true })
  }
}

function trialOfAnswer({ responseText }: TurnResult): TurnTrial {
  const understood = responseText.trim() !== ''
  return { understood, loggedIn: understood, text: understood ? 'it answers' : 'its answer was empty' }
}

function trialOfFailure({ code, responseText }: TurnResult): TurnTrial {
  // These codes mean that the provider answered and the backend understood it.
  switch (code) {
    case 'auth_failed':
      return { understood: true, loggedIn: false, text: 'its provider refuses its credentials' }
    case 'quota_exhausted':
      return { understood: true, loggedIn: true, text: 'its quota or credit at the provider is used up' }
    case 'rate_limited':
      return { understood: true, loggedIn: true, text: 'its provider limits the rate' }
    case 'overloaded':
      return { understood: true, loggedIn: undefined, text: 'its provider is overloaded' }
    default:
      return { understood: false, loggedIn: undefined, text: `the turn failed: ${responseText}` }
  }
}

function makeTurn(workingDir: string): Turn {
  const id = ulid()
  return {
    id,
    messageId: id,
    conversationId: id,
    prompt: PROMPT,
    systemPrompt: '',
    workingDir,
    mcpServers: [],
    notes: {},
    env: {},
    ask: async () => 'denied',
    request: {
      workspace_id: 'doctor',
      caller_id: '',
      message_id: id,
      idempotency_key: id,
      task_id: id,
      context_id: id,
      parts: [{ type: 'text', text: PROMPT }],
      method: 'SendMessage',
      sender: { kind: 'program', id: 'doctor', name: 'doctor', door: 'cli' },
      raw: { jsonrpc: '2.0', id, method: 'SendMessage' },
    },
  }
}
