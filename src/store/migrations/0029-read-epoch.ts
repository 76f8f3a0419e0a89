/**
 * Schema 29: a result that an agent read belongs to the attempt that read it. A lost or failed attempt takes what it read
 * with it, so the result is sent to the conversation when a later attempt is done and has not read it.
 */
export const schema0029 = `
-- read_epoch: of a delegated message, the epoch of the turn of its parent that read the result last; null while unread.
alter table messages add column read_epoch integer;
`
