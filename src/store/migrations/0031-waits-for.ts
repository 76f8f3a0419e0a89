/**
 * Schema 31: a message that was given back until a time says what it waits for, where a person can end the wait:
 * `turns_per_hour`. Null for every other wait, and for rows of earlier versions.
 */
export const schema0031 = `
alter table messages add column waits_for text;
create index messages_waits_for on messages (workspace_id) where waits_for is not null and state = 'queued';
`
