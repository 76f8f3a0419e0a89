/** How many columns of a terminal a text takes: a letter of Chinese, Japanese or Korean and an emoji take two. */

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u
const ZERO = /\p{Mn}|\p{Me}|\p{Cf}/u

export function widthOf(text: string): number {
  let width = 0
  for (const character of text) width += columnsOf(character)
  return width
}

export function columnsOf(character: string): number {
  if (character < '\u0300') return 1
  if (ZERO.test(character)) return 0
  return WIDE.test(character) ? 2 : 1
}

/** The text, or its beginning with `…` where it takes more columns. */
export function cutToWidth(text: string, columns: number): string {
  let width = 0
  let end = 0
  let fits = 0
  for (const character of text) {
    width += columnsOf(character)
    if (width <= columns - 1) fits = end + character.length
    if (width > columns) return `${text.slice(0, fits)}…`
    end += character.length
  }
  return text
}

/** The lines of a text, broken between words where that is possible. */
export function wrapToWidth(text: string, columns: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`
    if (widthOf(longer) <= columns) {
      line = longer
      continue
    }
    if (line !== '') lines.push(line)
    line = word
  }
  return [...lines, line]
}
