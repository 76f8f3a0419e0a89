/** Schema 11: what makes conversation tokens invalid. They have no rows; each names the generation and the run below. */
export const schema0011 = `
-- Raised by a restart of the workspace, by a revocation and by its deletion: conversation tokens of an earlier generation
-- are refused.
alter table workspaces add column token_generation integer not null default 0;

-- The current start of each platform on this store. Processes of turns end with their platform, and so do their tokens.
create table token_runs (
  host text primary key,
  run text not null
);
`
