/**
 * Schema 27: a message knows that its turn delegated. The settle reads the row of its message anyway, so a message
 * without children costs no further statement.
 */
export const schema0027 = `
-- has_children: 1 once a turn of this message delegated. Only a hint to look after the children at once: it may be
-- missing, and the sweep finds them without it.
alter table messages add column has_children integer;
`
