/** Schema 10: when the last bridge of a workspace signed off; null while one is connected, or is only silent. */
export const schema0010 = `
alter table presence add column signed_off_at bigint;
`
