/**
 * `mode: text`: for each message exactly `BIN -p ARGS`, with the message on stdin. What it prints is the reply, byte for
 * byte, and its failures are those of `exec`. It keeps no session, and neither the system prompt nor any other option of
 * ours reaches the program: the owner's arguments say all.
 */
import { outputTo, replyPart } from '../engine/cli/stdout-reply.ts'
import { runFailure } from '../engine/failure/run-failure.ts'
import type { EndEvent, TurnStream } from '../engine/turn-engine.ts'
import { environmentOf, factsOf, KILL_GRACE_MS, type StartPlan } from './start-plan.ts'

export async function runText(plan: StartPlan, prompt: string, stream: TurnStream): Promise<EndEvent> {
  const { claude, turn } = plan
  const { bin, args, timeoutMs } = claude.settings
  const facts = factsOf(claude)
  const result = await claude.context.processes.run(
    {
      command: [bin, '-p', ...args],
      cwd: turn.workingDir,
      env: environmentOf(plan),
      mark: turn.id,
      input: prompt,
      outputBytesMax: facts.outputBytesMax,
      killGraceMs: KILL_GRACE_MS,
      timeoutMs,
      onOutput: outputTo(stream),
      onWait: turn.onWait,
    },
    stream.signal,
  )
  const error = runFailure(result, { ...facts, command: [bin, '-p', ...args].join(' ') })
  if (error !== undefined) return { type: 'failed', error }
  return { type: 'done', parts: [replyPart(result.stdout)], finality: 'completed' }
}
