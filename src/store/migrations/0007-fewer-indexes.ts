/**
 * Schema 7: fewer and smaller indexes, because every message pays for each of them. A conversation whose context the
 * platform made has the id of that context, and a task the id of the message that opened it. Only rows where the two
 * ids differ are in an index. In older rows they always differ.
 */
export const schema0007 = `
drop index conversations_name;
create unique index conversations_name on conversations (workspace_id, principal, context_id) where id <> context_id;
drop index messages_task;
create index messages_task on messages (task_id, n) where task_id <> id;

-- All messages up to this number are settled: the search for the oldest unsettled one starts after it.
alter table conversations add column settled_n integer not null default 0;
drop index messages_open;

-- Few tasks change in the same millisecond: they are sorted when they are read.
drop index tasks_list;
create index tasks_list on tasks (workspace_id, updated_at);
`
