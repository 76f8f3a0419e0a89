/**
 * The backends of a bridge: the built-in ones, and the adapters in the data folder of this machine. Adapters are loaded
 * only when `--backend` names none of the built-in ones.
 */
import { installAdapterPackages, listAdapterFolders, loadAdapters } from '../../backends/adapters.ts'
import {
  type BackendRegistry,
  builtinBackends,
  createBackendRegistry,
  longBackendName,
} from '../../backends/backends.ts'
import { systemClock } from '../../clock.ts'
import { ulid } from '../../ids.ts'
import { type Log, silentLog } from '../../log.ts'
import { bridgeEnvironment } from '../../process/child-environment.ts'
import { createProcesses } from '../../process/create-processes.ts'
import { adaptersDirOf } from '../data-folder/adapter-record.ts'
import type { Terminal } from '../terminal/terminal.ts'

export async function findBackends(
  name: string | undefined,
  { home, terminal }: { readonly home: string; readonly terminal: Pick<Terminal, 'env' | 'err'> },
): Promise<BackendRegistry> {
  const builtin = createBackendRegistry(builtinBackends)
  const dir = adaptersDirOf(home)
  if (name === undefined || builtin.names().includes(longBackendName(name))) return builtin
  if ((await listAdapterFolders(dir)).length === 0) return builtin
  // There is no log file yet, and a person must see why an adapter is skipped.
  const say = (_: object, message: string) => terminal.err(`warning: ${message}\n`)
  const log: Log = { ...silentLog, warn: say, error: say }
  const processes = createProcesses({ owner: `adapters-${ulid()}`, clock: systemClock, log: silentLog })
  try {
    await installAdapterPackages(dir, { processes, environment: bridgeEnvironment(terminal.env), log })
  } finally {
    await processes.close()
  }
  const { loaded, broken } = await loadAdapters({ dir, taken: builtin.names(), log })
  return createBackendRegistry([...builtinBackends, ...loaded.map(({ definition }) => definition)], broken)
}
