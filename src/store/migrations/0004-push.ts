/** Schema 4: what an attempt notes for the next one, and where callers want to be told of their tasks. */
export const schema0004 = `
-- Written in the middle of a turn, read by the next attempt at the same message.
create table turn_notes (
  message_id text not null,
  key text not null,
  value text not null,
  task_id text not null,
  workspace_id text not null,
  primary key (message_id, key)
);
create index turn_notes_task on turn_notes (task_id);

-- One webhook of one task. config: URL and secrets as the caller gave them, in 1.0 form. version: of the words it is told in.
-- seq, k: the last event that was delivered. tries: of the one after it, since first_failed_at.
-- worker: who follows the task for it now, until next_at at the latest; where nobody does, next_at is when to begin.
-- state: active, failed (given up; reason says why), done (the task is final and all of it is told).
create table push_configs (
  task_id text not null,
  id text not null,
  workspace_id text not null,
  version text not null,
  config text not null,
  state text not null,
  reason text,
  seq bigint not null default 0,
  k integer not null default 0,
  tries integer not null default 0,
  first_failed_at bigint,
  worker text,
  next_at bigint not null,
  created_at bigint not null,
  primary key (task_id, id)
);
create index push_configs_due on push_configs (next_at) where state = 'active';
`
