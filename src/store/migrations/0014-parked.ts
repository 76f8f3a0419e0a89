/**
 * Schema 14: how often a message was parked for a limit of its model provider, and since when. The retry policy counts
 * from these columns, so a restart or another worker continues the schedule.
 */
export const schema0014 = `
alter table messages add column parks integer not null default 0;
alter table messages add column parked_at bigint;
`
