/**
 * Permissions over claude's control protocol: before claude uses a tool that the settings do not allow, it asks and
 * waits. A person decides, about exactly what would be done. Meanwhile the turn uses neither its slot nor its time.
 * Invariant: every request of claude is answered once, withdrawn by claude, or ends with the turn.
 */
import type { RunningProcess } from '../../process/processes.ts'
import type { PermissionRequest, Turn } from '../backend.ts'
import { allowsToolUse, subjectOfInput } from '../engine/tool-use.ts'
import type { TurnStream } from '../engine/turn-engine.ts'
import type { WarmAgent } from '../engine/warm/warm-pool.ts'
import type { AgentProcess } from '../engine/warm/warm-turn.ts'
import { QUESTION_TOOL } from './outcome.ts'
import { type ClaudeEvent, parseLine } from './parse.ts'

type ClaudeAsk = Extract<ClaudeEvent, { type: 'ask' }>

export interface ClaudePermissions {
  ask(ask: ClaudeAsk): void
  withdraw(requestId: string): void
  /** The turn is over: open requests get no answer. */
  end(): void
}

const NO_TERMINAL_USER =
  'No person is at the terminal to answer. Put your question into your reply and end your turn; the answer comes as the next message.'
const NO_TURN = 'Permission denied: no message is being answered now. Wait for the next message.'
const DENIED = 'Permission denied: the person who was asked did not allow it. Do not try to get around it.'

export interface ClaudePermissionsOptions {
  readonly turn: Turn
  /** claude compares names and its own patterns; one exact use of any tool (`Read({"file_path":"a"})`) is compared here. */
  readonly allowedTools: readonly string[]
}

export function createClaudePermissions(
  { turn, allowedTools }: ClaudePermissionsOptions,
  warmAgent: WarmAgent<AgentProcess>,
  stream: TurnStream,
): ClaudePermissions {
  const open = new Map<string, AbortController>()
  const answer = (ask: ClaudeAsk, response: object) => warmAgent.agent.running.write(answerLine(ask, response))
  // The input that the person saw, so that nothing else runs.
  const allow = (ask: ClaudeAsk) => answer(ask, { behavior: 'allow', updatedInput: ask.input })
  const askPerson = async (ask: ClaudeAsk) => {
    const stop = new AbortController()
    open.set(ask.requestId, stop)
    const signal = AbortSignal.any([stop.signal, stream.signal])
    try {
      const asked = warmAgent.suspendDuring(() => turn.ask(toPermissionRequest(ask), signal), signal)
      const decision = await stream.pauseDuring(asked)
      if (signal.aborted) return
      if (decision === 'allowed') await allow(ask)
      else await answer(ask, { behavior: 'deny', message: DENIED })
    } catch {
      // If the person cannot be asked, the tool is denied.
      if (!signal.aborted) await answer(ask, { behavior: 'deny', message: DENIED })
    } finally {
      open.delete(ask.requestId)
    }
  }
  return {
    ask(ask) {
      stream.emit({ type: 'activity' })
      if (ask.tool === QUESTION_TOOL) void answer(ask, { behavior: 'deny', message: NO_TERMINAL_USER })
      else if (allowsToolUse(allowedTools, toPermissionRequest(ask))) void allow(ask)
      else void askPerson(ask)
    },
    withdraw: (requestId) => open.get(requestId)?.abort(),
    end() {
      for (const stop of open.values()) stop.abort()
    },
  }
}

/**
 * Denies a request between turns. claude may continue by itself when a background command ends. No person can be asked
 * then, and a request without an answer would block the next message.
 */
export function denyBetweenTurns(running: Pick<RunningProcess, 'write'>, line: string): void {
  for (const event of parseLine(line) ?? []) {
    if (event.type === 'ask') void running.write(answerLine(event, { behavior: 'deny', message: NO_TURN }))
  }
}

function answerLine({ requestId }: ClaudeAsk, response: object): string {
  const answer = { subtype: 'success', request_id: requestId, response }
  return `${JSON.stringify({ type: 'control_response', response: answer })}\n`
}

function toPermissionRequest({ toolUseId, tool, input }: ClaudeAsk): PermissionRequest {
  return { id: toolUseId, tool, subject: subjectOfInput(input) }
}
