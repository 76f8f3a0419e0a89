/**
 * Which survivors are accepted: those that a rule of `test/accepted-mutants.ts` names. A rule says which kind of change makes
 * no difference and why, so a moved or rewritten line needs no new entry. Only survivors are compared: a rule hides no kill.
 */
import type { Mutant } from './mutants.ts'

export interface AcceptedRule {
  /** Why no test can notice such a change. */
  readonly reason: string
  /** Only files whose path begins like this; absent = the whole source. */
  readonly below?: string
  /** The lines of the mutant, marked as `«old → new»`, match one of these. */
  readonly edits: readonly RegExp[]
}

/** The first rule that accepts this mutant. */
export function findRule(rules: readonly AcceptedRule[], { file, edit }: Mutant): AcceptedRule | undefined {
  return rules.find(({ below = '', edits }) => file.startsWith(below) && edits.some((each) => each.test(edit)))
}

/** Patterns that match no mutant of the source any more, each with the start of its rule. */
export function unusedEdits(rules: readonly AcceptedRule[], mutants: readonly Mutant[]): string[] {
  return rules.flatMap(({ below = '', edits, reason }) =>
    edits
      .filter((each) => !mutants.some(({ file, edit }) => file.startsWith(below) && each.test(edit)))
      .map((each) => `${below} ${each.source}: ${reason}`.trim()),
  )
}
