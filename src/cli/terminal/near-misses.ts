/** Finds what a person meant: the known words nearest to a mistyped one. */

/** More would no longer be a suggestion. */
const SUGGESTIONS_MAX = 3
/** The distance takes time with the product of the lengths; longer words are not compared. */
const WORD_CHARACTERS_MAX = 100

/** The nearest candidates, at most three, the best first; empty where none is near. */
export function nearMisses(word: string, candidates: readonly string[]): string[] {
  const typed = word.toLowerCase()
  const near = [...new Set(candidates)].flatMap((candidate) => {
    const distance = distanceBetween(typed, candidate.toLowerCase())
    return distance === undefined ? [] : [{ candidate, distance }]
  })
  const best = Math.min(...near.map(({ distance }) => distance))
  return near
    .filter(({ distance }) => distance === best)
    .slice(0, SUGGESTIONS_MAX)
    .map(({ candidate }) => candidate)
}

/** `; did you mean "parrot"?`, or empty where nothing is near. */
export function didYouMean(word: string, candidates: readonly string[]): string {
  const near = nearMisses(word, candidates)
  return near.length === 0 ? '' : `; did you mean ${near.map((one) => JSON.stringify(one)).join(' or ')}?`
}

/** Typing errors between the words; undefined where they are too many for a typing error. */
function distanceBetween(typed: string, known: string): number | undefined {
  if (typed === known) return 0
  if (Math.max(typed.length, known.length) > WORD_CHARACTERS_MAX) return undefined
  // Half of a word, such as `claude` for `claude-code`, is nearer than any typing error.
  if (typed.length >= 3 && (known.startsWith(typed) || typed.startsWith(known))) return 0.5
  const errors = typingErrors(typed, known)
  const longest = Math.max(typed.length, known.length)
  // Two words of one letter have nothing in common.
  return errors < longest && errors <= Math.max(1, Math.floor(longest / 3)) ? errors : undefined
}

/** Letters that were added, left out, replaced, or swapped with the next one. */
function typingErrors(typed: string, known: string): number {
  let [twoAbove, above]: [number[], number[]] = [[], Array.from({ length: known.length + 1 }, (_, column) => column)]
  for (let row = 1; row <= typed.length; row++) {
    const line = [row]
    for (let column = 1; column <= known.length; column++) {
      const isSame = typed[row - 1] === known[column - 1]
      const isSwapped = typed[row - 1] === known[column - 2] && typed[row - 2] === known[column - 1]
      line[column] = Math.min(
        at(above, column) + 1,
        at(line, column - 1) + 1,
        at(above, column - 1) + (isSame ? 0 : 1),
        isSwapped ? at(twoAbove, column - 2) + 1 : Number.POSITIVE_INFINITY,
      )
    }
    ;[twoAbove, above] = [above, line]
  }
  return at(above, known.length)
}

const at = (line: readonly number[], column: number): number => line[column] ?? Number.POSITIVE_INFINITY
