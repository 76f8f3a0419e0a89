/**
 * The rooms that `npm run test:mutate` breaks, and the tests that must notice: unit tests in one process, then one process
 * for each file. The cheapest come first, because a mutant is dead at the first failing test.
 */
import { globSync } from 'node:fs'
import { join } from 'node:path'

/** One process of tests: its name in the report and the arguments of Node. */
export interface TestStep {
  readonly name: string
  readonly argv: readonly string[]
}

interface RoomTests {
  /** Rooms whose unit tests run, all in one process. */
  readonly unit: readonly string[]
  /** Parts of `test/`, without `.test.ts`. */
  readonly files: readonly string[]
  /** The same; `--quick` leaves them out. */
  readonly slow: readonly string[]
}

export const ROOMS: Readonly<Record<string, RoomTests>> = {
  inbox: {
    // Its tests are the contract.
    unit: ['inbox'],
    files: ['contracts/sqlite', 'e2e/events', 'e2e/push', 'e2e/permissions', 'hostile/offline-workspace'],
    slow: ['hostile/large-pages', 'e2e/a2a-semantics', 'e2e/circles', 'e2e/connect', 'contracts/inbox-model-sqlite'],
  },
  workspaces: {
    unit: ['workspaces', 'doors/http'],
    files: ['e2e/registry', 'e2e/workspaces', 'hostile/token-theft', 'hostile/sandbox', 'hostile/exposure'],
    slow: ['hostile/data-folder', 'hostile/planted-code', 'e2e/platform', 'e2e/circles', 'e2e/connect'],
  },
  'doors/http': {
    unit: ['doors/http'],
    files: ['hostile/wrong-tokens', 'e2e/events', 'e2e/registry', 'e2e/ws', 'e2e/workspaces', 'e2e/a2a-semantics'],
    slow: ['e2e/platform', 'e2e/push', 'hostile/log-flood', 'e2e/connect', 'e2e/a2a-clients', 'e2e/a2a-streams'],
  },
  runtime: {
    unit: ['runtime'],
    files: ['e2e/failures', 'e2e/exec', 'e2e/permissions', 'e2e/platform'],
    slow: ['e2e/connect', 'e2e/claude-code'],
  },
  client: {
    unit: ['client'],
    files: ['e2e/relay', 'e2e/connect-stop', 'e2e/connect'],
    slow: ['e2e/push', 'e2e/cli', 'e2e/connect-failures'],
  },
}

export function roomOf(file: string): string {
  return Object.keys(ROOMS).find((room) => file.startsWith(`src/${room}/`)) ?? ''
}

/** The source files of a room, without its tests. */
export function sourcesOf(root: string, room: string): string[] {
  const files = globSync(`src/${room}/**/*.ts`, { cwd: root })
  return files.filter((file) => !file.endsWith('.test.ts')).sort()
}

/** The tests for a mutant of this file, in the order in which they run: the unit tests nearest to the file first. */
export function stepsOf(root: string, file: string, quick: boolean): TestStep[] {
  const { unit, files, slow } = ROOMS[roomOf(file)] ?? { unit: [], files: [], slow: [] }
  const find = (room: string) => globSync(`src/${room}/**/*.test.ts`, { cwd: root }).sort()
  const byNearness = (a: string, b: string) => commonLength(b, file) - commonLength(a, file)
  const tests = unit.map((name) => ({ name, paths: find(name).sort(byNearness) }))
  const unitSteps = tests
    .filter(({ paths }) => paths.length > 0)
    .map(({ name, paths }) => ({
      name: `unit tests of ${name}`,
      // `unit-tests.mjs` imports absolute paths; each worker runs it in its own copy of the repository.
      argv: [join('scripts', 'unit-tests.mjs'), ...paths],
    }))
  const fileSteps = [...files, ...(quick ? [] : slow)].map((part) => ({
    name: `test/${part}.test.ts`,
    argv: [`test/${part}.test.ts`],
  }))
  return [...unitSteps, ...fileSteps]
}

function commonLength(a: string, b: string): number {
  let length = 0
  while (length < a.length && a[length] === b[length]) length += 1
  return length
}
