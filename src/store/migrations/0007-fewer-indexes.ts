/**
 * Schema 7: fewer and smaller indexes, for every message pays for each of them. What has one name is not given two: a
 * conversation whose context the platform made is called like that context, a task like the message that opened it,
 * and only what is called otherwise stands in an index. Rows from before this are all called otherwise.
 */
export const schema0007 = `
drop index conversations_name;
create unique index conversations_name on conversations (workspace_id, principal, context_id) where id <> context_id;
drop index messages_task;
create index messages_task on messages (task_id, n) where task_id <> id;

-- No message up to this number is unsettled, nor will be: from there on the oldest unsettled one is looked for.
alter table conversations add column settled_n integer not null default 0;
drop index messages_open;

-- Tasks that changed in the same millisecond are few: they are put in order when they are read.
drop index tasks_list;
create index tasks_list on tasks (workspace_id, updated_at);
`
