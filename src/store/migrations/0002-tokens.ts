/** Schema 2: tokens for programs and agents, rotation with an overlap, and the time of the last use. */
export const schema0002 = `
-- workspace_id: the roles workspace and conversation act as it. conversation_id: role conversation. workspaces: role
-- caller, a JSON list of the workspaces it may send to. old_hash: the secret before the last rotation, valid until
-- old_until.
alter table tokens add column workspace_id text;
alter table tokens add column conversation_id text;
alter table tokens add column workspaces text;
alter table tokens add column old_hash text;
alter table tokens add column old_until bigint;
alter table tokens add column last_used_at bigint;
create unique index tokens_old_hash on tokens (old_hash) where old_hash is not null;
create index tokens_workspace on tokens (workspace_id) where workspace_id is not null;
`
