/**
 * The public description of a failed turn: a category that programs can switch on, and one fixed sentence. Invariant:
 * it contains nothing of the error's own message, which may hold paths, keys and stderr output.
 */
import type { ErrorCode, MoleculeError } from '../errors.ts'
import { ulid } from '../ids.ts'
import type { Failure, Lease, Outcome } from '../inbox/worker.ts'
import type { Log } from '../log.ts'

export interface FailureSentence {
  readonly category: string
  readonly sentence: string
}

/** Undefined where the message is meant for the caller: the agent's own reason, or that of a hook. */
export function failureSentence({ code, details }: MoleculeError): FailureSentence | undefined {
  if (code === 'vetoed' || (code === 'agent_failed' && details['forCaller'] === true)) return undefined
  if (typeof details['drift'] === 'string') return INCOMPATIBLE
  if (code === 'exit') return exitSentence(details['exitCode'], details['signal'])
  const [category, sentence] = (details['remote'] === true ? REMOTE_SENTENCES[code] : undefined) ??
    SENTENCES[code] ?? ['internal', 'an internal error occurred during the turn']
  return { category, sentence }
}

const INCOMPATIBLE: FailureSentence = {
  category: 'incompatible',
  sentence: "this version of the agent's program does not work with Molecule",
}

function exitSentence(exitCode: unknown, signal: unknown): FailureSentence {
  if (typeof exitCode === 'number') {
    if (exitCode === 127)
      return { category: 'exit_127', sentence: 'a command of the agent was not found (exit code 127)' }
    if (exitCode === 126)
      return { category: 'exit_126', sentence: 'a command of the agent is not executable (exit code 126)' }
    return { category: `exit_${exitCode}`, sentence: `the agent's program ended with exit code ${exitCode}` }
  }
  // Accepts only the name of a signal, so that no text of the program gets into the sentence.
  const name = typeof signal === 'string' && /^SIG[A-Z0-9]{1,10}$/.test(signal) ? ` by ${signal}` : ''
  return { category: 'exit_signal', sentence: `the agent's program was killed${name}` }
}

/** Of a workspace that calls another agent or a tool, and no model. */
const REMOTE_SENTENCES: Partial<typeof SENTENCES> = {
  provider_unreachable: ['provider_unreachable', 'the remote agent cannot be reached'],
  provider_failed: ['provider_failed', 'the remote agent could not answer'],
}

const SENTENCES: Partial<Readonly<Record<ErrorCode, readonly [category: string, sentence: string]>>> = {
  rate_limited: ['rate_limited', "the model provider's rate limit is reached"],
  quota_exhausted: ['quota_exhausted', 'the quota or credit at the model provider is used up'],
  auth_failed: ['auth_failed', 'the agent could not log in to its model provider'],
  overloaded: ['overloaded', 'the model provider is overloaded'],
  provider_unreachable: ['provider_unreachable', 'the model provider cannot be reached'],
  unknown_model: ['unknown_model', "the agent's model does not exist or is not offered to its account"],
  bad_request: ['bad_request', 'the model provider refuses the request of the agent'],
  provider_failed: ['provider_failed', 'the model provider could not answer'],
  context_full: ['context_full', "the conversation no longer fits into the model's context"],
  session_lost: ['session_error', 'the agent no longer knows this conversation'],
  timeout: ['timeout', 'the agent did not finish in time'],
  agent_failed: ['agent_failed', 'the agent reported an error'],
  unreadable_output: ['unreadable_output', "the output of the agent's program could not be read"],
  empty_response: ['empty_response', 'the agent ended without an answer'],
  no_end: ['no_end', 'the agent stopped without an answer'],
  backend_missing: ['backend_missing', "the agent's program is missing"],
  spawn_failed: ['spawn_failed', "the agent's program could not be started"],
  bad_config: ['bad_config', 'the configuration of the workspace does not work'],
  max_turns: ['max_turns', 'the agent reached its limit of steps'],
  too_large: ['too_large', 'the output of the agent is too large'],
  bad_attachment: ['bad_attachment', 'a file of the message could not be used'],
  canceled: ['canceled', 'the turn was cancelled'],
}

type Mask = (text: string) => string

/**
 * Prepares the failure of a turn for the inbox. It gives the failure an id and logs everything under that id. The stored
 * failure has the public sentence with category and id, and for the owner the error's own message with secrets masked.
 */
export function explainFailure(outcome: Outcome, lease: Lease, { log, mask }: { log: Log; mask: Mask }): Outcome {
  if (outcome.type !== 'retry' && outcome.type !== 'dead') return outcome
  const id = `err_${ulid()}`
  const { workspaceId, taskId, messageId } = lease
  const failure = maskTexts(outcome.failure, mask)
  const fields = { errorId: id, workspaceId, taskId, messageId, outcome: outcome.type, ...failure }
  // A person who stops a turn must not get a warning in the terminal of the platform.
  if (failure.code === 'canceled') log.info(fields, 'a turn was stopped')
  else log.warn(fields, 'a turn failed')
  return { ...outcome, failure: toStoredFailure(failure, id) }
}

/** Of each text of a failure. A remote agent may write more; the rest is dropped before anything reads it. */
const TEXT_CHARACTERS_MAX = 64 * 1024
/** Half a key is not recognised, so this much of the end of a cut text is dropped: longer than a key can be. */
const KEY_CHARACTERS_MAX = 4096

function maskTexts({ message, details, ...failure }: Failure, mask: Mask): Failure {
  const masked = (text: string) => {
    if (text.length <= TEXT_CHARACTERS_MAX) return mask(text)
    return `${mask(text.slice(0, TEXT_CHARACTERS_MAX)).slice(0, -KEY_CHARACTERS_MAX)}... (${text.length} characters)`
  }
  return {
    ...failure,
    message: masked(message),
    ...(details !== undefined && {
      details: Object.fromEntries(
        // Other values hold no secret.
        Object.entries(details).map(([key, value]) => [key, typeof value === 'string' ? masked(value) : value]),
      ),
    }),
  }
}

/** Of a program's output in a stored failure. The log has the rest. */
const OUTPUT_CHARACTERS_MAX = 500

function toStoredFailure({ code, message, details, category, sentence }: Failure, id: string): Failure {
  let shortMessage = message
  let shortDetails = details
  for (const key of ['stderr', 'stdout']) {
    const output = details?.[key]
    if (typeof output !== 'string') continue
    shortMessage = shortMessage.replace(output, () => tail(output))
    shortDetails = { ...shortDetails, [key]: tail(output) }
  }
  return {
    code,
    message: shortMessage,
    id,
    details: shortDetails,
    category,
    ...(sentence !== undefined && { sentence: `${sentence} (${category}, ${id})` }),
  }
}

/** Cut between characters, not inside of one. */
const tail = (text: string): string =>
  text.length <= OUTPUT_CHARACTERS_MAX
    ? text
    : `...${text.slice(-OUTPUT_CHARACTERS_MAX).replace(/^[\udc00-\udfff]/, '')}`
