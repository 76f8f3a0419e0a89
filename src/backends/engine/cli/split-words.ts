/**
 * Splits a line of arguments into words as a shell does, with spaces, quotes and backslashes. It expands nothing: no
 * variable, no pattern, no command. For the `args` option.
 */

/** Undefined if a quote is not closed or the line ends in a backslash. */
export function splitWords(line: string): readonly string[] | undefined {
  const words: string[] = []
  let word: string | undefined
  let quote = ''
  for (let at = 0; at < line.length; at += 1) {
    const character = line.charAt(at)
    if (quote !== '' && character === quote) {
      quote = ''
    } else if (character === '\\' && quote !== "'") {
      at += 1
      if (at >= line.length) return undefined
      word = `${word ?? ''}${escaped(line.charAt(at), quote)}`
    } else if (quote === '' && (character === "'" || character === '"')) {
      quote = character
      word ??= ''
    } else if (quote === '' && /\s/.test(character)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else {
      word = `${word ?? ''}${character}`
    }
  }
  if (quote !== '') return undefined
  return word === undefined ? words : [...words, word]
}

/** Inside double quotes, a backslash escapes only these characters. */
function escaped(character: string, quote: string): string {
  if (quote === '' || character === '"' || character === '\\' || character === '$' || character === '`')
    return character
  return `\\${character}`
}
