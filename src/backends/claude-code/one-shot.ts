/** One turn of claude in a process of its own (`claude -p`), which prints one result at its end. */
import type { BackendEvent } from '../backend.ts'
import { cliTurnWork } from '../engine/cli/cli-turn.ts'
import { createPrivateFolder } from '../engine/files/private-folder.ts'
import { usageEvents } from '../engine/reply-builder.ts'
import type { EndEvent, TurnStream } from '../engine/turn-engine.ts'
import { endOf, failureOfRun } from './outcome.ts'
import { type ClaudeResult, parseResult } from './parse.ts'
import { costSince, writeSession } from './session.ts'
import { commandOf, environmentOf, factsOf, KILL_GRACE_MS, type StartPlan } from './start-plan.ts'

export async function runOneShot(plan: StartPlan, prompt: string, stream: TurnStream): Promise<EndEvent> {
  const { claude, turn } = plan
  const env = environmentOf(plan)
  const folder = createPrivateFolder()
  try {
    const work = cliTurnWork(claude.context.processes, {
      run: { command: commandOf(plan, folder), cwd: turn.workingDir, env, mark: turn.id, killGraceMs: KILL_GRACE_MS },
      input: prompt,
      read: (line) => resultEvents(parseResult(line), plan),
      conclude: (run, stdout) => ({ type: 'failed', error: failureOfRun(run, stdout, factsOf(claude)) }),
    })
    return await work(stream)
  } finally {
    folder.remove()
  }
}

function resultEvents(result: ClaudeResult | undefined, plan: StartPlan): readonly BackendEvent[] {
  if (result === undefined) return []
  const { claude, model } = plan
  const { sessionId: id, inputTokens, outputTokens, sessionCostUsd } = result
  const session: BackendEvent = { type: 'session', token: writeSession({ id, model, costUsd: sessionCostUsd }) }
  return [
    ...(id === '' ? [] : [session]),
    ...usageEvents({
      inputTokens,
      outputTokens,
      costUsd: result.costUsd ?? costSince(costBefore(plan), sessionCostUsd),
    }),
    endOf(result, factsOf(claude)),
  ]
}

/** The part of the cost that claude reports for a new process which earlier processes of the session have used up. */
export function costBefore({ session, features }: Pick<StartPlan, 'session' | 'features'>): number | undefined {
  return session === undefined || !features.addsUpCost ? 0 : session.costUsd
}
