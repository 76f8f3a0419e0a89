/**
 * Texts that are slow for a regular expression, made from its own characters: what each of its loops repeats, after what
 * leads to that loop, and before a character that lets the match fail. Superlinear patterns meet one of these.
 */

/** `prefix`, then `unit` as often as it fits, then `suffix`. */
export interface RepeatedText {
  readonly prefix: string
  readonly unit: string
  readonly suffix: string
}

export const toText = ({ prefix, unit, suffix }: RepeatedText, characters: number): string =>
  prefix + unit.repeat(Math.ceil(characters / unit.length)) + suffix

/** In no pattern, so that a match ends here. */
const STRANGER = '\u0001'
const UNITS_MAX = 6
/** A loop with a smaller limit cannot take much time. */
const LOOP_MIN = 20
const CHARACTERS = [
  ...Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index)),
  ...['\n', '\t', 'é', '漢', '\u001b', '\u200e', '\u0300'],
]
const COMMON = ['a', '0', ' ', '-', '.', 'A', '\n']

export function hostileTexts(pattern: RegExp): RepeatedText[] {
  const alternatives = readPattern(pattern)
  const shapes: RepeatedText[] = []
  for (const { prefix, units, suffix } of loopsOf(alternatives, '')) {
    for (const unit of units) {
      const ends = ['', STRANGER, `\n${STRANGER}`, suffix.slice(0, 1) + STRANGER, suffix.slice(0, -1) + STRANGER]
      shapes.push(...ends.map((end) => ({ prefix, unit, suffix: end })))
      shapes.push({ prefix: '', unit, suffix: STRANGER })
      for (const end of ends.slice(1)) shapes.push({ prefix: '', unit: prefix + unit, suffix: end })
    }
  }
  for (const pieces of alternatives) {
    const whole = pieces.map(once).join('')
    shapes.push({ prefix: '', unit: whole, suffix: '' }, { prefix: '', unit: whole.slice(0, -1), suffix: STRANGER })
  }
  const byText = new Map(shapes.filter(({ unit }) => unit !== '').map((shape) => [JSON.stringify(shape), shape]))
  return [...byText.values()]
}

/** An atom of a pattern with its quantifier. */
interface Piece {
  /** Short texts that it matches once; empty for an assertion. */
  readonly units: readonly string[]
  readonly min: number
  readonly max: number
  /** The alternatives of a group. */
  readonly inner: readonly (readonly Piece[])[]
}

interface Loop {
  /** A text that leads to the loop. */
  readonly prefix: string
  readonly units: readonly string[]
  /** A text that may follow it. */
  readonly suffix: string
}

const once = ({ units, min }: Piece): string => (units[0] ?? '').repeat(Math.max(min, 1))

function loopsOf(alternatives: readonly (readonly Piece[])[], start: string): Loop[] {
  return alternatives.flatMap((pieces) => {
    let prefix = start
    return pieces.flatMap((piece, index) => {
      const suffix = pieces
        .slice(index + 1)
        .map(once)
        .join('')
      const own = piece.max >= LOOP_MIN ? [{ prefix, units: piece.units, suffix }] : []
      const all = [...own, ...loopsOf(piece.inner, prefix)]
      prefix += once(piece)
      return all
    })
  })
}

function readPattern({ source, flags }: RegExp): Piece[][] {
  let at = 0
  const take = (token: RegExp): string | undefined => {
    const sticky = new RegExp(token.source, 'y')
    sticky.lastIndex = at
    const found = sticky.exec(source)?.[0]
    at += found?.length ?? 0
    return found
  }
  const alternatives = (): Piece[][] => {
    const all: Piece[][] = [[]]
    while (at < source.length && source[at] !== ')') {
      if (take(/\|/) !== undefined) all.push([])
      else all.at(-1)?.push(quantified(atom()))
    }
    return all
  }
  const atom = (): Pick<Piece, 'units' | 'inner'> => {
    if (take(/\^|\$|\\[bB]|\\\d/) !== undefined) return { units: [], inner: [] }
    const open = take(/\((?:\?(?:[:=!]|<[=!]|<\w+>))?/)
    if (open !== undefined) {
      const inner = alternatives()
      take(/\)/)
      const isAssertion = /^\(\?<?[=!]/.test(open)
      const texts = inner.map((pieces) => pieces.map(once).join('')).slice(0, UNITS_MAX)
      return { units: isAssertion ? [] : texts, inner: open.startsWith('(?<') && isAssertion ? [] : inner }
    }
    const token = take(/\[(?:\\[\s\S]|[^\]\\])*\]|\\[pP]\{[^}]*\}|\\u\{[^}]*\}|\\u....|\\x..|\\[\s\S]|[\s\S]/) ?? ''
    return { units: charactersOf(token, flags, source), inner: [] }
  }
  const quantified = (piece: Pick<Piece, 'units' | 'inner'>): Piece => {
    const text = take(/(?:[*+?]|\{\d+(?:,\d*)?\})\??/)
    return { ...piece, ...timesOf(text) }
  }
  return alternatives()
}

function timesOf(quantifier: string | undefined): { min: number; max: number } {
  if (quantifier === undefined) return { min: 1, max: 1 }
  if (quantifier.startsWith('*')) return { min: 0, max: Number.POSITIVE_INFINITY }
  if (quantifier.startsWith('+')) return { min: 1, max: Number.POSITIVE_INFINITY }
  if (quantifier.startsWith('?')) return { min: 0, max: 1 }
  const [, min = '0', comma, max] = /^\{(\d+)(,?)(\d*)/.exec(quantifier) ?? []
  return { min: Number(min), max: comma === '' ? Number(min) : Number(max || Number.POSITIVE_INFINITY) }
}

/** Characters that a class matches: first those that the pattern names elsewhere too, because loops then overlap. */
function charactersOf(token: string, flags: string, source: string): string[] {
  const isIn = new RegExp(`^${token}$`, flags.replaceAll(/[gym]/g, ''))
  const all = CHARACTERS.filter((character) => isIn.test(character))
  const named = all.filter((character) => source.replace(token, '').includes(character)).slice(0, UNITS_MAX / 2)
  const common = COMMON.filter((character) => all.includes(character))
  return [...new Set([...common.slice(0, 1), ...named, ...common, ...all.slice(0, 1)])].slice(0, UNITS_MAX)
}
