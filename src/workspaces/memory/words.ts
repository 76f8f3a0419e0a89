/**
 * The words of a text for the search index: lower case, without accents and without the `s` of a plural. Scripts that are
 * written without spaces give pairs of characters, so that a part of a sentence is found.
 */

/** Of one memory. Further words are not indexed. */
const WORDS_MAX = 400
const WORD_CHARACTERS_MAX = 40
const TOKEN = /[\p{L}\p{N}_]+/gu
const ACCENTS = /\p{M}/gu
const WITHOUT_SPACES = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]+/gu

/** Each word with the number of times it occurs. */
export function countWords(text: string, max = WORDS_MAX): Map<string, number> {
  const counts = new Map<string, number>()
  for (const [token] of text.normalize('NFKD').replace(ACCENTS, '').toLowerCase().matchAll(TOKEN)) {
    for (const word of wordsOfToken(token)) {
      const known = counts.get(word)
      if (known !== undefined) counts.set(word, known + 1)
      else if (counts.size < max) counts.set(word, 1)
    }
  }
  return counts
}

function wordsOfToken(token: string): string[] {
  const rest = token.replace(WITHOUT_SPACES, ' ').split(' ')
  const pairs = (token.match(WITHOUT_SPACES) ?? []).flatMap(pairsOf)
  return [...rest.filter((word) => word !== '').map(toStem), ...pairs]
}

const toStem = (word: string): string =>
  (word.length > 3 && /[^s]s$/.test(word) ? word.slice(0, -1) : word).slice(0, WORD_CHARACTERS_MAX)

function pairsOf(run: string): string[] {
  const characters = [...run]
  if (characters.length === 1) return characters
  return characters.slice(1).map((character, index) => `${characters[index]}${character}`)
}
