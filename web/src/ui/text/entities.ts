/**
 * HTML entities in Markdown as the characters that they name. The browser knows all names. It reads the content of a
 * `textarea` as text, so no entity becomes markup. An entity that is not known stays as it is written.
 */

const ENTITY = /&(#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});/g

export const decodeEntities = (text: string): string =>
  text.replaceAll(ENTITY, (written, name: string) =>
    name.startsWith('#') ? decodeNumber(written, name) : decodeName(written),
  )

const reader = document.createElement('textarea')

function decodeName(written: string): string {
  reader.innerHTML = written
  // `&notin;` is a name. Of `&nothing;` the browser would read `&not`, and leave the rest.
  return reader.value.endsWith(';') && written !== '&semi;' ? written : reader.value
}

function decodeNumber(written: string, name: string): string {
  // `x2014` is read as `0x2014`.
  const code = Number(/^#x/i.test(name) ? `0${name.slice(1)}` : name.slice(1))
  return isShown(code) ? String.fromCodePoint(code) : written
}

/** No control character, no half of a pair, and none that turns the direction of the text around it. */
function isShown(code: number): boolean {
  if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return false
  if (code < 0x20) return code === 0x09 || code === 0x0a
  return !(code >= 0x7f && code <= 0x9f) && !(code >= 0x202a && code <= 0x202e) && !(code >= 0x2066 && code <= 0x2069)
}
