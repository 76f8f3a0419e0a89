/**
 * Schema 22: when the last lease of a message began. Null for a message whose first turn began with its admission, and for
 * messages of earlier versions: `admitted_at` is that time.
 */
export const schema0022 = `
alter table messages add column leased_at bigint;
`
