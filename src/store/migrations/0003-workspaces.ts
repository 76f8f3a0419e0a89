/** Schema 3: workspaces that are paused, deleted, or heard of from afar; how far a log has been pruned. */
export const schema0003 = `
-- paused: 1 while messages are taken in and none is handed out.
-- pruned_seq: the last number of the log that retention has removed; a cursor before it has missed something.
alter table workspace_load add column paused integer not null default 0;
alter table workspace_load add column pruned_seq bigint not null default 0;

-- A deleted workspace keeps its row as a tombstone, so that its id can never be used again.
alter table workspaces add column deleted_at bigint;
create index workspaces_deleted on workspaces (deleted_at) where deleted_at is not null;

-- The last sign of life of a workspace that runs elsewhere, and what it said of itself.
create table presence (
  workspace_id text primary key,
  registered_at bigint not null,
  heard_at bigint not null,
  report text not null
);
`
