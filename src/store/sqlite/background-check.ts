/**
 * Checks the pages of a large store after a crash, in a thread of its own while the platform works. The check of one
 * table is one read transaction, so that the write-ahead log is held no longer than one table takes.
 */
import { DatabaseSync } from 'node:sqlite'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { isDamage } from './errors.ts'

/** The problem of a damaged store, or why the check could not be done, which proves nothing. Neither: it is whole. */
export interface CheckResult {
  readonly problem?: string
  readonly failure?: string
}

export interface BackgroundCheck {
  /** Never rejects. A check that is stopped never resolves. */
  readonly result: Promise<CheckResult>
  stop(): Promise<void>
}

export function startBackgroundCheck(path: string): BackgroundCheck {
  const worker = new Worker(new URL(import.meta.url), { workerData: path })
  // A process that ends need not wait for the check.
  worker.unref()
  const { promise: result, resolve } = Promise.withResolvers<CheckResult>()
  worker.once('message', (found: CheckResult) => resolve(found))
  worker.once('error', (error) => resolve({ failure: error.message }))
  return {
    result,
    async stop() {
      await worker.terminate()
    },
  }
}

function check(path: string): CheckResult {
  const database = new DatabaseSync(path, { readOnly: true })
  try {
    const tables = database.prepare("select name from sqlite_schema where type = 'table'").all()
    for (const { name } of tables) {
      const row = database.prepare(`pragma quick_check('${String(name)}')`).get()
      const answer = String(row?.['quick_check'] ?? 'no answer')
      if (answer !== 'ok') return { problem: answer }
    }
    return {}
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    return isDamage(error) ? { problem: text } : { failure: text }
  } finally {
    database.close()
  }
}

if (!isMainThread && typeof workerData === 'string') parentPort?.postMessage(check(workerData))
