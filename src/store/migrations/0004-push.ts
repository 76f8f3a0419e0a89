/** Schema 4: notes of an attempt for the next one, and the webhooks of tasks. */
export const schema0004 = `
-- Written during a turn, read by the next attempt at the same message.
create table turn_notes (
  message_id text not null,
  key text not null,
  value text not null,
  task_id text not null,
  workspace_id text not null,
  primary key (message_id, key)
);
create index turn_notes_task on turn_notes (task_id);

-- One webhook of one task. config: URL and secrets from the caller, in 1.0 form. version: the A2A version of the calls.
-- seq, k: the last delivered event. tries: attempts to deliver the next event, since first_failed_at.
-- worker: the process that delivers now, until next_at at the latest; without a worker, next_at is when to start.
-- state: active, failed (given up; see reason), done (the task is final and every event is delivered).
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
