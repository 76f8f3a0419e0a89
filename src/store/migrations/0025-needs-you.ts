/**
 * Schema 25: what waits for a person is found without reading the other tasks and deliveries. Both indexes are partial: a
 * task that asks nothing and a delivery that arrives are in neither.
 */
export const schema0025 = `
create index tasks_asking on tasks (workspace_id, updated_at)
  where state in ('TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_AUTH_REQUIRED');
create index deliveries_undecided on deliveries (workspace_id, created_at)
  where state in ('failed', 'unknown') and finished_at is null;
`
