/**
 * A step of the model test as a command of fast-check: one thing that may happen to an inbox. Numbers choose among what
 * there is at that moment, whatever that is. A step says what it did, so that a failure reads as a story.
 */
import fc from 'fast-check'
import { conclude, type Game } from './game.ts'
import type { Model } from './model.ts'
import type { Node } from './world.ts'

export type Command = fc.AsyncCommand<Model, Game>

interface Step<P> {
  readonly name: string
  readonly choice: fc.Arbitrary<P>
  /** Whether there is anything to do it to. */
  possible(model: Model, choice: NoInfer<P>): boolean
  /** Does it, on both sides, and gives what it was done to. */
  run(game: Game, choice: NoInfer<P>): Promise<string>
}

export function command<P>({ name, choice, possible, run }: Step<P>): fc.Arbitrary<Command> {
  return choice.map((chosen) => {
    let story = ''
    return {
      check(model) {
        story = ''
        return possible(model, chosen)
      },
      async run(_model, game) {
        story = await run(game, chosen)
        await conclude(game)
      },
      toString: () => `\n  ${name} ${story || JSON.stringify(chosen)}`,
    }
  })
}

export const number = fc.nat(20)
export const rarely = fc.integer({ min: 0, max: 4 }).map((value) => value === 4)
export const always = () => true
export const at = <T>(list: readonly T[], index: number): T => list[index % list.length] as T
export const living = ({ world }: Game): Node[] => world.nodes.filter(({ alive }) => alive)
