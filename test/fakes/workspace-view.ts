/** A workspace for unit tests of the page. */
import type { WorkspaceSummary } from '../../src/client/views.ts'

export const fakeWorkspace = (id: string, more: Partial<WorkspaceSummary> = {}): WorkspaceSummary => ({
  id,
  name: id,
  role: '',
  runtime: 'mock',
  status: 'online',
  tier: 2,
  max_concurrent_tasks: 1,
  max_attempts: 3,
  created_at: '2026-11-16T00:00:00.000Z',
  ...more,
})
