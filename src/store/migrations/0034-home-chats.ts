/**
 * Schema 34: messages of the platform's own initiative. channel_homes: the chat in which a person of a channel wants them
 * (quiet: the hours without them, as JSON). A delivery may belong to a workspace without a task: then `purpose` says what
 * it is. schedules.report_to: where the answers of a schedule go.
 */
export const schema0034 = `
create table channel_homes (
  channel text not null,
  person text not null,
  name text not null,
  place text not null,
  quiet text,
  set_at bigint not null,
  primary key (channel, person)
);
alter table schedules add column report_to text;
create table deliveries_next (
  id text primary key,
  workspace_id text not null,
  task_id text,
  message_id text,
  purpose text,
  door text not null,
  channel text not null,
  body text not null,
  state text not null,
  sender text,
  tries integer not null default 0,
  next_at bigint not null,
  created_at bigint not null,
  finished_at bigint,
  receipt text,
  error text
);
insert into deliveries_next (id, workspace_id, task_id, message_id, door, channel, body, state, sender, tries, next_at,
    created_at, finished_at, receipt, error)
  select id, workspace_id, task_id, message_id, door, channel, body, state, sender, tries, next_at, created_at,
    finished_at, receipt, error from deliveries;
drop table deliveries;
alter table deliveries_next rename to deliveries;
create index deliveries_due on deliveries (door, channel, id) where state in ('pending', 'sending');
create index deliveries_task on deliveries (task_id);
create index deliveries_undecided on deliveries (workspace_id, created_at)
  where state in ('failed', 'unknown') and finished_at is null;
create index deliveries_own on deliveries (workspace_id, created_at) where task_id is null;
`
