/** Schema 5: secrets that the platform makes once and that every node on the store shares. */
export const schema0005 = `
create table secrets (
  name text primary key,
  value text not null
);
`
