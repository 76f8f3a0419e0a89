/**
 * Schema 18: messages that are sent at times. next_at: when the schedule is due; null when no further time follows.
 * last_at: the time of the last run, and last_task_id its task. note: why the last time was left out. webhook: where the
 * answer goes, with its signing secret.
 */
export const schema0018 = `
create table schedules (
  id text primary key,
  workspace_id text not null,
  name text not null,
  cron text not null,
  time_zone text not null,
  text text not null,
  missed text not null,
  same_conversation integer not null,
  webhook text,
  paused integer not null default 0,
  next_at bigint,
  last_at bigint,
  last_task_id text,
  note text,
  created_at bigint not null
);
create index schedules_due on schedules (next_at) where paused = 0 and next_at is not null;
create index schedules_workspace on schedules (workspace_id, id);
`
