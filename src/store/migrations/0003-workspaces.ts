/**
 * Schema 3: paused and deleted workspaces, heartbeats of workspaces that run elsewhere, and how far a log is pruned.
 */
export const schema0003 = `
-- paused: 1 while messages are admitted and none is leased.
-- pruned_seq: the last number of the log that retention has removed; a cursor before it has missed events.
alter table workspace_load add column paused integer not null default 0;
alter table workspace_load add column pruned_seq bigint not null default 0;

-- A deleted workspace keeps its row as a tombstone, so that its id can never be used again.
alter table workspaces add column deleted_at bigint;
create index workspaces_deleted on workspaces (deleted_at) where deleted_at is not null;

-- The last heartbeat of a workspace that runs elsewhere, and its report.
create table presence (
  workspace_id text primary key,
  registered_at bigint not null,
  heard_at bigint not null,
  report text not null
);
`
