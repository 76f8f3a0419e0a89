/** Push configs in memory: every task has one config, a new config is returned as it was set, and no URL is called. */
import type { PushContext } from '../../../src/doors/http/a2a/push-methods.ts'
import type { StoredPush } from '../../../src/inbox/delivery.ts'

export function createFakePushContext(): PushContext {
  const stored = (workspaceId: string, taskId: string): StoredPush => ({
    ...{ workspaceId, taskId, id: 'hook', version: '1.0' },
    config: { taskId, id: 'hook', url: 'https://hook.test/', token: 'a secret' },
    cursor: { seq: 0, k: 0 },
  })
  const nothing = async () => undefined
  return {
    check: nothing,
    wake: () => undefined,
    configs: {
      put: async ({ workspaceId, config }) => ({ ...stored(workspaceId, config.taskId), id: config.id, config }),
      list: async (workspaceId, taskId) => [stored(workspaceId, taskId)],
      remove: async () => true,
      nudge: nothing,
      claim: async () => [],
      renew: nothing,
      isCurrent: async () => true,
      advance: async () => true,
      fail: async () => 'later',
      idle: nothing,
      release: nothing,
    },
  }
}
