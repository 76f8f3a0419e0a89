/** Schema 28: replies whose checksum is wrong, until a person has seen it. */
export const schema0028 = `
create table damaged_replies (
  message_id text primary key,
  workspace_id text not null,
  task_id text not null,
  found_at bigint not null,
  dismissed_at bigint
);
create index damaged_replies_open on damaged_replies (workspace_id) where dismissed_at is null;
`
