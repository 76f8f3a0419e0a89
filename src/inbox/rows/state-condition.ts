/** SQL conditions on the column `state`. Each table of the inbox has its own typed function: `inStates`, `inAskStates` ... */

/** `state = 'a'` or `state in ('a', 'b')`. A caller with an alias writes it before: `m.${...}`. */
export const stateCondition = (states: readonly string[]): string => {
  const list = states.map((state) => `'${state}'`).join(', ')
  return states.length === 1 ? `state = ${list}` : `state in (${list})`
}

/** One state or more: a condition without a state would be no SQL. */
export type States<State extends string> = readonly [State, ...State[]]
