/** Schema 24: budgets of messages and of the days of workspaces, and the messages that wait for one. */
export const schema0024 = `
-- id: the message that brought the budget, or '<workspace>.<day>'. root_id: the first message of its tree; null for a
-- day. day: UTC days since 1970. state: open, asked (the owner is asked to raise it or to stop), stopped.
create table budgets (
  id text primary key,
  workspace_id text not null,
  root_id text,
  task_id text,
  day bigint,
  limit_usd double precision not null,
  state text not null,
  asked_at bigint,
  answered_at bigint
);
create index budgets_tree on budgets (root_id) where root_id is not null;
create index budgets_asked on budgets (asked_at) where state = 'asked';
-- A message that was parked because its budget is spent. since: when it was parked first.
create table budget_waits (
  message_id text primary key,
  workspace_id text not null,
  budget_id text not null,
  since bigint not null
);
create index budget_waits_budget on budget_waits (budget_id);
`
