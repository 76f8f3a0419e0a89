/**
 * Checks the adapters of the data folder: each with its hash, because its code has all rights of the platform, and with
 * what is wrong with it. Only code that the last start of the platform has loaded is run here: a doctor must not be the
 * first to run what somebody has changed.
 */
import { join } from 'node:path'
import { findAdapterProblem, importAdapter } from '../../backends/adapters.ts'
import type { Backend, BackendContext } from '../../backends/backend.ts'
import { createOptions } from '../../backends/options.ts'
import { toMoleculeError } from '../../errors.ts'
import { type AdapterState, adaptersDirOf, compareAdapters } from '../data-folder/adapter-record.ts'
import { checkDrift } from './agents.ts'
import type { Finding } from './finding.ts'

export async function examineAdapters(
  dataDir: string,
  context: BackendContext,
  signal: AbortSignal,
): Promise<Finding[]> {
  const states = await compareAdapters(dataDir)
  return await Promise.all(states.map((state) => examineAdapter(state, { dataDir, context, signal })))
}

interface ExamineAdapterOptions {
  readonly dataDir: string
  readonly context: BackendContext
  readonly signal: AbortSignal
}

const CHANGE_TEXTS = { new: 'new', changed: 'changed', removed: 'removed' } as const

async function examineAdapter(state: AdapterState, options: ExamineAdapterOptions): Promise<Finding> {
  const { adapter, hash, change, since } = state
  const about = { area: 'adapters', name: adapter }
  const problem = await findProblem(state, options)
  if (problem !== undefined) {
    const remedy = 'correct it, then restart the platform'
    return { ...about, verdict: 'broken', text: `it cannot be used: ${problem}`, remedy }
  }
  if (change !== 'none') {
    const text = `${CHANGE_TEXTS[change]} since the last start of the platform: ${hash}`
    return { ...about, verdict: 'note', text, remedy: 'if you did not do this, look at its code before you restart' }
  }
  const drift = await findDrift(adapter, options)
  const text = `${hash}, the same since ${since}`
  return drift === undefined
    ? { ...about, verdict: 'ok', text }
    : { ...about, ...drift, text: `${drift.text}; ${text}` }
}

async function findProblem(
  { adapter, change, problem }: AdapterState,
  { dataDir }: ExamineAdapterOptions,
): Promise<string | undefined> {
  const folder = join(adaptersDirOf(dataDir), adapter)
  if (change === 'removed') return undefined
  const ofFiles = await findAdapterProblem(folder)
  if (change !== 'none' || ofFiles !== undefined || problem !== undefined) return ofFiles ?? problem
  return await importAdapter(folder).then(
    () => undefined,
    (thrown: unknown) => toMoleculeError(thrown).message,
  )
}

/** What its own probe finds; undefined where it has none, or finds nothing. */
async function findDrift(
  adapter: string,
  { dataDir, context, signal }: ExamineAdapterOptions,
): Promise<Pick<Finding, 'verdict' | 'text'> | undefined> {
  const definition = await importAdapter(join(adaptersDirOf(dataDir), adapter))
  if (definition === undefined) return undefined
  let backend: Backend
  try {
    backend = definition.create(createOptions({}), context)
  } catch {
    // It has options that must be set; the workspace that uses it shows what is wrong.
    return undefined
  }
  try {
    const drift = await checkDrift(backend, signal)
    return drift.verdict === 'ok' ? undefined : drift
  } finally {
    await backend.close()
  }
}
