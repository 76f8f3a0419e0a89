/** Schema 12: when a platform last looked after waiting messages, so that time without any platform does not expire them. */
export const schema0012 = `
create table upkeep_clock (
  name text primary key,
  at_ms bigint not null
);
`
