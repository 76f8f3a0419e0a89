/**
 * Makes the brief of a leased message, step by step. The local runtime and the HTTP route for bridges both call this function,
 * so a bridge gets the same brief. It runs after the lease has committed; a step that throws fails the message with its words.
 */
import type { Lease } from '../../inbox/worker.ts'
import type { Brief } from '../../protocol/brief.ts'
import type { BriefedBridge } from '../workspace.ts'

/** One step: the brief, with what the step adds. */
export type BriefStep<Key> = (brief: Brief, key: Key) => Promise<Brief>

export type MakeBrief = (lease: Lease, bridge?: BriefedBridge) => Promise<Brief>

export interface BriefSteps {
  /** Settings of the workspace, its folder, the session token and the environment. */
  readonly start: MakeBrief
  readonly systemPrompt: BriefStep<Lease>
  readonly history: BriefStep<Lease>
  readonly earlierConversation: BriefStep<Lease>
  readonly recall: BriefStep<Lease>
  /** Parks a turn whose budget is spent. */
  readonly budget: BriefStep<Lease>
  /** Parks a turn over the limit of the hour. The last step: it counts the turns that begin. */
  readonly turnLimit: BriefStep<Lease>
}

export const createMakeBrief =
  (steps: BriefSteps): MakeBrief =>
  async (lease, bridge) => {
    let brief = await steps.start(lease, bridge)
    brief = await steps.systemPrompt(brief, lease)
    brief = await steps.history(brief, lease)
    brief = await steps.earlierConversation(brief, lease)
    brief = await steps.recall(brief, lease)
    brief = await steps.budget(brief, lease)
    return await steps.turnLimit(brief, lease)
  }
