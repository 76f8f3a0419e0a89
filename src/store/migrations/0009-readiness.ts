/** Schema 9: the row that `/ready` writes to prove that the store can be written; one for each host. */
export const schema0009 = `
create table readiness (
  host text primary key,
  checked_at bigint not null,
  filler text not null
);
`
