/**
 * Schema 33: a channel may need further secrets and settings besides its token (secrets: an object of strings, as JSON).
 * The kind of a chat program of the owner's own is `socket`: the old name was taken for the service LINE.
 */
export const schema0033 = `
alter table channels add column secrets text;
update channels set kind = 'socket' where kind = 'line';
`
