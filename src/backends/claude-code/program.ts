/**
 * What the installed claude knows, so that it gets no option that it refuses. The version says it: asked once for each
 * file of the program, and only before a turn that depends on it. The versions were found by running each of them. A
 * version that says nothing counts as the newest; what claude then refuses at its start is left out from there on.
 */
import { realpath, stat } from 'node:fs/promises'
import { abortable } from '../../wait.ts'
import type { Drift, Validation } from '../backend.ts'
import { findProgram, type ValidateCliOptions, validateCli } from '../engine/probe/validate-cli.ts'

/** The real-agent suite runs these two versions. */
export const OLDEST_TESTED = '2.1.197'
export const NEWEST_TESTED = '2.1.327'

const UPDATE = 'update claude with `npm install -g @anthropic-ai/claude-code@latest`'

/** Earlier versions have no such option, and give every resumed session the present system prompt. */
const SNAPSHOT_OPTION_SINCE = '2.1.257'
/** Earlier versions count the cost from the start of the process, also if it resumes a session. */
const COST_OF_SESSION_SINCE = '2.1.277'

/** Options that a turn works without, and what it then lacks. */
const DISPENSABLE: ReadonlyMap<string, string> = new Map([
  ['--system-prompt-snapshot', 'a changed system prompt may not reach a conversation that has begun'],
  ['--include-partial-messages', 'an answer arrives in one piece'],
])

export interface ClaudeFeatures {
  /** Options that this claude does not know. */
  readonly unknownOptions: ReadonlySet<string>
  /** Whether the cost that a resumed session reports includes its earlier processes. */
  readonly addsUpCost: boolean
}

export interface ClaudeProgram {
  /** Runs `--version` in any case. */
  validate(signal: AbortSignal): Promise<Validation>
  features(signal: AbortSignal): Promise<ClaudeFeatures>
  /** These features without what claude has refused so far. Starts nothing. */
  remembered(features: ClaudeFeatures): ClaudeFeatures
  /**
   * Remembers an option that claude refused when it was started for these features. Undefined if something else is
   * missing, or if claude got no such option from us: starting it again would not help.
   */
  leaveOut(missing: string | undefined, started: ClaudeFeatures): Drift | undefined
  /** One sentence for each thing that does not work with this version. */
  limits(): readonly string[]
  /** Ends a check that is running. Idempotent. */
  close(): Promise<void>
}

interface KnownVersion {
  readonly stamp: string
  readonly version: string | undefined
}

export function createClaudeProgram(options: ValidateCliOptions): ClaudeProgram {
  const closing = new AbortController()
  let known: KnownVersion | undefined
  /** Shared by turns that begin at once. */
  let checking: Promise<unknown> | undefined
  let refused: ReadonlySet<string> = new Set()
  const validate = async (signal: AbortSignal) => {
    const stamp = await stampOf(options)
    // Another program may know what the last one refused.
    if (stamp !== known?.stamp) refused = new Set()
    const validation = await validateCli(options, signal)
    // A check that failed, as on a busy machine, says nothing: the next turn that depends on the version asks again.
    known = validation.ok ? { stamp, version: validation.version } : undefined
    return validation
  }
  return {
    validate,
    async features(signal) {
      if (known === undefined || known.stamp !== (await stampOf(options))) {
        checking ??= validate(closing.signal).finally(() => {
          checking = undefined
        })
        await abortable(checking, signal)
      }
      return featuresOf(known?.version, refused)
    },
    remembered: (features) => ({ ...features, unknownOptions: refused }),
    leaveOut(missing, { unknownOptions }) {
      const option = /^(?:option|value of) (--[\w-]+) missing$/.exec(missing ?? '')?.[1] ?? ''
      const instead = DISPENSABLE.get(option)
      if (missing === undefined || instead === undefined || unknownOptions.has(option)) return undefined
      refused = new Set([...refused, option])
      return { missing, instead }
    },
    limits: () => limitsOf(known?.version, refused),
    async close() {
      closing.abort()
      await checking?.catch(() => undefined)
    },
  }
}

function featuresOf(version: string | undefined, refused: ReadonlySet<string>): ClaudeFeatures {
  const hasSnapshots = !isBefore(version, SNAPSHOT_OPTION_SINCE)
  return {
    unknownOptions: hasSnapshots ? refused : new Set([...refused, '--system-prompt-snapshot']),
    addsUpCost: !isBefore(version, COST_OF_SESSION_SINCE),
  }
}

function limitsOf(version: string | undefined, refused: ReadonlySet<string>): readonly string[] {
  const missing = [...refused].map(
    (option) => `this claude does not know the option ${option}, so ${DISPENSABLE.get(option)}: ${UPDATE}`,
  )
  if (!isBefore(version, OLDEST_TESTED)) return missing
  const old = `claude ${version} is older than ${OLDEST_TESTED}, the oldest version that Molecule is tested with: ${UPDATE}`
  return [old, ...missing]
}

/** Changes when another program is installed under the same name, as an update does. */
async function stampOf({ bin, env }: ValidateCliOptions): Promise<string> {
  const { path } = await findProgram(bin, env['PATH'] ?? '')
  if (path === undefined) return ''
  const target = await realpath(path)
  const { mtimeMs, size } = await stat(target)
  return `${target} ${mtimeMs} ${size}`
}

/** False for a version that is unknown. */
function isBefore(version: string | undefined, other: string): boolean {
  if (version === undefined) return false
  const [mine, theirs] = [version, other].map((text) => text.split('.').map((part) => Number.parseInt(part, 10) || 0))
  const at = theirs?.findIndex((part, index) => part !== (mine?.[index] ?? 0)) ?? -1
  return at >= 0 && (mine?.[at] ?? 0) < (theirs?.[at] ?? 0)
}
