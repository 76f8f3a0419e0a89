/**
 * A step of the model test as a command of fast-check: one thing that may happen to an inbox. A step holds numbers,
 * which choose among the tasks, leases and nodes that exist when it runs. It returns what it did, so that a failure
 * reads as a story.
 */
import fc from 'fast-check'
import type { InboxModel } from './model.ts'
import { conclude, type ModelRun } from './model-run.ts'
import type { TestNode } from './node-cluster.ts'

export type ModelCommand = fc.AsyncCommand<InboxModel, ModelRun>

interface ModelStep<P> {
  readonly name: string
  readonly choice: fc.Arbitrary<P>
  /** True when the step has something to act on. */
  possible(model: InboxModel, choice: NoInfer<P>): boolean
  /** Acts on the model and on the real inbox, and returns a description. */
  run(modelRun: ModelRun, choice: NoInfer<P>): Promise<string>
}

export function command<P>({ name, choice, possible, run }: ModelStep<P>): fc.Arbitrary<ModelCommand> {
  return choice.map((chosen) => {
    let story = ''
    return {
      check(model) {
        story = ''
        return possible(model, chosen)
      },
      async run(_model, modelRun) {
        story = await run(modelRun, chosen)
        await conclude(modelRun)
      },
      toString: () => `\n  ${name} ${story || JSON.stringify(chosen)}`,
    }
  })
}

export const number = fc.nat(20)
export const rarely = fc.integer({ min: 0, max: 4 }).map((value) => value === 4)
export const always = () => true
export const pick = <T>(list: readonly T[], index: number): T => list[index % list.length] as T
export const aliveNodes = ({ cluster }: ModelRun): TestNode[] => cluster.nodes.filter(({ alive }) => alive)
