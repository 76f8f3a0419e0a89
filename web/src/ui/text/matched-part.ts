/** The part of a title that a query matched, so that a list can show why an entry is in it. */

/** The part of the title that the query matched; undefined where the words are apart. */
export function matchedPart(title: string, query: string): readonly [before: string, match: string, after: string] {
  const wanted = query.trim().toLowerCase()
  const at = wanted === '' ? -1 : title.toLowerCase().indexOf(wanted)
  if (at < 0) return [title, '', '']
  return [title.slice(0, at), title.slice(at, at + wanted.length), title.slice(at + wanted.length)]
}
