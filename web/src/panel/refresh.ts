/** Keeps the queries of an open tab current, and runs the actions of its buttons. */
import { useEffect, useRef, useState } from 'react'
import { reasonOf } from '../api/client.ts'
import { keys, queryClient, useWorkspaces } from '../api/queries.ts'
import { showToast } from '../ui/toasts.tsx'

/** A tab is read again at most this often while its workspace changes. */
const REFRESH_MS_MIN = 1500

/** Reads the named queries of the workspace again after a change of any workspace, since work crosses workspaces. */
export function useRefreshOnChange(workspaceId: string, ...names: readonly string[]): void {
  const workspaces = useWorkspaces()
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const isFirst = useRef(true)
  const listed = names.join(' ')
  useEffect(() => {
    if (isFirst.current || workspaces.size === 0) {
      isFirst.current = false
      return
    }
    timer.current ??= setTimeout(() => {
      timer.current = undefined
      for (const name of listed.split(' ')) refresh(workspaceId, name)
    }, REFRESH_MS_MIN)
  }, [workspaces, workspaceId, listed])
  useEffect(() => () => clearTimeout(timer.current), [])
}

export function refresh(workspaceId: string, name: string): void {
  void queryClient.invalidateQueries({ queryKey: keys.workspace(workspaceId, name) })
}

export interface PanelAction {
  readonly isBusy: boolean
  /** Returns whether it succeeded; a failure is shown. */
  run(work: () => Promise<unknown>): Promise<boolean>
}

export function usePanelAction(): PanelAction {
  const [isBusy, setBusy] = useState(false)
  return {
    isBusy,
    async run(work) {
      setBusy(true)
      try {
        await work()
        return true
      } catch (thrown) {
        showToast(reasonOf(thrown))
        return false
      } finally {
        setBusy(false)
      }
    },
  }
}
