/**
 * Checks whether processes of turns run in cgroups. A running platform has recorded it. Otherwise it is tried here, with
 * an empty cgroup that is removed again; a platform that starts in another session or service may find another answer.
 */
import { join } from 'node:path'
import { ulid } from '../../ids.ts'
import { silentLog } from '../../log.ts'
import { openCgroups } from '../../process/cgroups.ts'
import { readCgroupRecord } from '../../process/kill-cgroup.ts'
import { readRunningPlatform } from '../data-folder/data-folder.ts'
import type { Finding } from './finding.ts'

const REMEDY = 'run the platform in a cgroup that its user may change: see docs/security.md#processes-of-a-turn'

export async function examineCgroups(dataDir: string): Promise<Finding> {
  const about = { area: 'platform', name: 'cgroups' }
  const { path, reason } =
    readRunningPlatform(dataDir) === undefined ? await tryHere() : await readCgroupRecord(join(dataDir, 'processes'))
  if (path !== undefined) {
    const text = `used: each agent process has its own cgroup, which is killed at its end (${path})`
    return { ...about, verdict: 'ok', text }
  }
  const text = `not used (${reason ?? 'the platform has not recorded why'}): a process that leaves its group and clears its environment outlives its turn`
  return { ...about, verdict: 'note', text, remedy: REMEDY }
}

async function tryHere(): Promise<{ path?: string; reason?: string }> {
  const { cgroups, ...rest } = await openCgroups({ owner: `doctor-${ulid()}`, log: silentLog })
  await cgroups?.close()
  return cgroups === undefined ? rest : { path: cgroups.path }
}
