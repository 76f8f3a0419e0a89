/**
 * Schema 30: work that goes on after its call knows the token that began it, so that a revoked or expired token ends it.
 * token_id: the token, or the principal of a conversation whose token has no row; null for rows of earlier versions, which
 * no token ends. secret_id: the hash of the secret that was used; a rotation ends it. stopped_at: when the platform paused
 * the schedule; null for a schedule that a person paused.
 */
export const schema0030 = `
alter table push_configs add column token_id text;
alter table push_configs add column secret_id text;
alter table schedules add column token_id text;
alter table schedules add column stopped_at bigint;
create index push_configs_token on push_configs (token_id) where state = 'active' and token_id is not null;
`
