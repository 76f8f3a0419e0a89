/** Reasons of the platform as sentences. Pure. */

/** Begins with a capital letter, but the name of a file or a program stays as it is. */
export const beginSentence = (text: string): string =>
  /^\p{Ll}[\p{L}'’]*(?:[ ,;:]|$)/u.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text

/** A whole sentence; an empty text stays empty. */
export function asSentence(text: string): string {
  const begun = beginSentence(text)
  return begun === '' || /[.!?…]$/.test(begun) ? begun : `${begun}.`
}

/** Without the codes for owners at the end: "(exit_3, err_01M7…)". */
export const plainReason = (text: string): string => text.replace(/ \((?:[\w.]+, )?err_\w+\)$/, '')
