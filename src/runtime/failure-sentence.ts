/**
 * What people are told of a failed turn: a category that programs can switch on, and one sentence of ours. Nothing of
 * the error's own message is in it, for that may hold paths, keys and whatever a program wrote to stderr.
 */
import type { ErrorCode, MoleculeError } from '../errors.ts'

export interface FailureSentence {
  readonly category: string
  readonly sentence: string
}

/** Undefined where an agent itself said why it gave up: those words were meant for whoever asked. */
export function failureSentence({ code, details }: MoleculeError): FailureSentence | undefined {
  if (code === 'agent_failed') return undefined
  if (code === 'exit') return exitSentence(details['exitCode'], details['signal'])
  const [category, sentence] = SENTENCES[code] ?? ['internal', 'something went wrong while the agent was at work']
  return { category, sentence }
}

function exitSentence(exitCode: unknown, signal: unknown): FailureSentence {
  if (typeof exitCode === 'number') {
    return { category: `exit_${exitCode}`, sentence: `the agent's program ended with exit code ${exitCode}` }
  }
  // A signal's name is the system's word, never the program's.
  const name = typeof signal === 'string' && /^SIG[A-Z0-9]{1,10}$/.test(signal) ? ` by ${signal}` : ''
  return { category: 'exit_signal', sentence: `the agent's program was killed${name}` }
}

const SENTENCES: Partial<Readonly<Record<ErrorCode, readonly [category: string, sentence: string]>>> = {
  rate_limited: ['rate_limited', 'the model provider asks to wait'],
  auth_failed: ['auth_failed', 'the agent could not log in to its model provider'],
  provider_failed: ['provider_failed', 'the model provider could not answer'],
  context_full: ['context_full', 'the conversation has grown beyond what the model can hold'],
  session_lost: ['session_error', 'the agent no longer knows this conversation'],
  timeout: ['timeout', 'the agent was not done within its time'],
  empty_response: ['empty_response', 'the agent ended without an answer'],
  no_end: ['no_end', 'the agent stopped without an answer'],
  backend_missing: ['backend_missing', "the agent's program is not there"],
  spawn_failed: ['spawn_failed', "the agent's program could not be started"],
  bad_config: ['bad_config', 'the workspace is not set up in a way that can work'],
  max_turns: ['max_turns', 'the agent used up the steps it is allowed'],
  too_large: ['too_large', 'the agent printed more than it may'],
  bad_attachment: ['bad_attachment', 'a file that came with the message could not be used'],
  canceled: ['canceled', 'the turn was cancelled'],
}
