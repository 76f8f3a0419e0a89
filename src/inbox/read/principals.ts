/**
 * Whose tasks a principal may see: its own, and those of the principals below it. A workspace (`ws:A`) sees what its
 * conversations (`ws:A/c1`) sent; a conversation sees only what it sent itself.
 */

const below = (viewer: string): string => `${viewer}/`

export const coversPrincipal = (viewer: string, owner: string): boolean =>
  viewer === owner || owner.startsWith(below(viewer))

/** `ws:A` of `ws:A/c1`; any other principal as it is. */
export const topPrincipal = (principal: string): string => principal.split('/', 1)[0] ?? principal

/** `coversPrincipal` as an SQL condition on the column `t.principal`; `$n` is the first free parameter. */
export function principalCondition(viewer: string, n: number): { readonly where: string; readonly values: string[] } {
  // Not `like` or `<`: ids contain its wildcard `_`, and the collation of a database may ignore punctuation.
  const prefix = below(viewer)
  const where = `(t.principal = $${n} or substr(t.principal, 1, ${prefix.length}) = $${n + 1})`
  return { where, values: [viewer, prefix] }
}
