/** Schema 2: tokens for programs and agents, rotated with an overlap, and when each was last used. */
export const schema0002 = `
-- For whom a token speaks: workspace_id (roles workspace and conversation), conversation_id (conversation), workspaces
-- (caller: a JSON list of those it may send to). old_hash is the secret before the last rotation, good until old_until.
alter table tokens add column workspace_id text;
alter table tokens add column conversation_id text;
alter table tokens add column workspaces text;
alter table tokens add column old_hash text;
alter table tokens add column old_until bigint;
alter table tokens add column last_used_at bigint;
create unique index tokens_old_hash on tokens (old_hash) where old_hash is not null;
create index tokens_workspace on tokens (workspace_id) where workspace_id is not null;
`
