/** HTML entities in Markdown as the characters that they name. Pure. An entity that is not known stays as it is written. */

/** The letters and marks of western European languages, in the order of their codes from 160 on. */
const LATIN1 = `nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3
  acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig
  Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave
  Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave
  iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml`

const NAMED: Readonly<Record<string, string>> = {
  ...Object.fromEntries(LATIN1.split(/\s+/).map((name, index) => [name, String.fromCodePoint(160 + index)])),
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  trade: '™',
  hellip: '…',
  mdash: '—',
  ndash: '–',
  lsquo: '‘',
  rsquo: '’',
  ldquo: '“',
  rdquo: '”',
  bull: '•',
  hearts: '♥',
  euro: '€',
  larr: '←',
  uarr: '↑',
  rarr: '→',
  darr: '↓',
  harr: '↔',
  rArr: '⇒',
  hArr: '⇔',
  le: '≤',
  ge: '≥',
  ne: '≠',
  asymp: '≈',
  infin: '∞',
  sum: '∑',
  radic: '√',
  alpha: 'α',
  beta: 'β',
  gamma: 'γ',
  delta: 'δ',
  lambda: 'λ',
  mu: 'μ',
  pi: 'π',
  sigma: 'σ',
  omega: 'ω',
  Delta: 'Δ',
  Sigma: 'Σ',
  Omega: 'Ω',
  check: '✓',
  cross: '✗',
  ensp: '\u2002',
  emsp: '\u2003',
}

const ENTITY = /&(#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,15});/g

export const decodeEntities = (text: string): string =>
  text.replaceAll(ENTITY, (written, name: string) => {
    if (!name.startsWith('#')) return Object.hasOwn(NAMED, name) ? (NAMED[name] ?? written) : written
    // `x2014` is read as `0x2014`.
    const code = Number(/^#x/i.test(name) ? `0${name.slice(1)}` : name.slice(1))
    return isShown(code) ? String.fromCodePoint(code) : written
  })

/** No control character, no half of a pair, and none that turns the direction of the text around it. */
function isShown(code: number): boolean {
  if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return false
  if (code < 0x20) return code === 0x09 || code === 0x0a
  return !(code >= 0x7f && code <= 0x9f) && !(code >= 0x202a && code <= 0x202e) && !(code >= 0x2066 && code <= 0x2069)
}
