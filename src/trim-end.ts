/** Removes a repeated character from the end of a text. Counts: a pattern such as `/+$` takes quadratic time on slashes. */
export function trimEndOf(text: string, character: string): string {
  let end = text.length
  while (end > 0 && text[end - 1] === character) end--
  return text.slice(0, end)
}
