/** Schema 6: tokens, cost and duration of turns. */
export const schema0006 = `
-- One row for each turn of a paid agent, or of one that reported its usage. A number that was not reported is null,
-- never 0.
create table turn_usage (
  message_id text not null,
  epoch integer not null,
  workspace_id text not null,
  task_id text not null,
  outcome text not null,
  ended_at bigint not null,
  duration_ms bigint,
  input_tokens bigint,
  output_tokens bigint,
  cost_usd double precision,
  primary key (message_id, epoch)
);
create index turn_usage_lately on turn_usage (workspace_id, ended_at);
create index turn_usage_age on turn_usage (ended_at);
`
