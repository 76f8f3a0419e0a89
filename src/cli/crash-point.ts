/**
 * For crash tests only: `MOLECULE_CRASH_AT=<checkpoint>[:<n>]` makes this process kill itself, as `kill -9` would, when
 * it passes the checkpoint for the n-th time. Without the variable nothing of this exists.
 */
import type { Checkpoint } from '../inbox/inbox.ts'

export function crashPoint(env: Readonly<Record<string, string | undefined>>): {
  onCheckpoint?: (checkpoint: Checkpoint) => void
} {
  const [point, nth = '1'] = (env['MOLECULE_CRASH_AT'] ?? '').split(':')
  if (!point) return {}
  let left = Number(nth)
  return {
    onCheckpoint(checkpoint) {
      if (checkpoint !== point) return
      left -= 1
      if (left === 0) process.kill(process.pid, 'SIGKILL')
    },
  }
}
