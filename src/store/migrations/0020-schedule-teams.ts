/** Schema 20: the team whose file made a schedule; null when a person or a program made it. */
export const schema0020 = `
alter table schedules add column team text;
`
