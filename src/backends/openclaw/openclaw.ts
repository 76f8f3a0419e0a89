/**
 * The `openclaw` backend: OpenClaw with one of its own sessions per conversation. It takes the first way that is open:
 * 1. the HTTP endpoint of a running gateway (mode session; 0.3 to 0.6 s), 2. `openclaw agent` through a running gateway
 * (2 s), 3. `openclaw agent --local` (10 to 20 s and 1 GB), one run at a time per state folder.
 * Invariant: a turn takes another way only if it cannot have begun.
 */
import { createOutbound, type Outbound } from '../../client/outbound.ts'
import type { MoleculeError } from '../../errors.ts'
import type { Backend, BackendContext, BackendDefinition, BackendEvent, Turn } from '../backend.ts'
import { ENDPOINT_OPTIONS, readAuthHeaders, readUrl } from '../endpoint.ts'
import { chooseModel } from '../engine/cli/choose-model.ts'
import { type CliKind, type CliSettings, cliOptions, readCliSettings } from '../engine/cli/cli-options.ts'
import { createOneShotBackend, type OneShotAgent } from '../engine/cli/one-shot-agent.ts'
import { createTurnEngine, emitActivityDuring, OUTPUT_BYTES_MAX, turnCanceled } from '../engine/turn-engine.ts'
import type { BackendOptions } from '../options.ts'
import { openclawArgs, timeoutSecondsOf } from './args.ts'
import { findGateway, type GatewaySource, isListening } from './gateway.ts'
import { runHttpTurn } from './http-turn.ts'
import { gatewayStateIn } from './outcome.ts'
import { createOpenclawParser } from './parse.ts'
import { createFolderQueue, stateFolderOf } from './state-folder.ts'

const KIND: CliKind = {
  backend: 'openclaw',
  bin: 'openclaw',
  modes: ['session', 'oneshot'],
  asksIn: [],
  cannot: [
    ...(['permission', 'allowed_tools', 'max_turns'] as const),
    ...(['mcp_servers', 'auth_token_file', 'warm_max', 'warm_idle'] as const),
  ],
  isolation: { stateIn: ['OPENCLAW_STATE_DIR'] },
}

const DEFAULT_AGENT = 'main'
/** Of the process, because several workspaces may use one state folder. */
const localRuns = createFolderQueue()

export const openclaw: BackendDefinition = {
  name: 'openclaw',
  summary: 'OpenClaw, through its gateway or started once per message, with its own sessions',
  options: cliOptions(KIND, {
    mode: "session: the gateway's HTTP endpoint if it is there; oneshot: one process for each message",
    agent: `the openclaw agent to run (${DEFAULT_AGENT})`,
    gateway_url: "the gateway's URL (http://127.0.0.1 with the port of openclaw's settings)",
    token_file: ENDPOINT_OPTIONS.token_file,
    token_env: ENDPOINT_OPTIONS.token_env,
    headers: ENDPOINT_OPTIONS.headers,
  }),
  runsCommands: true,
  // It names its tools only at the end.
  reportsTools: false,
  keepsSessions: true,
  tested: '2026.9.6',
  create(options, context) {
    const settings = readCliSettings(options, KIND, context.log)
    return new OpenclawBackend(settings, options, context)
  },
}

type Way = 'http' | 'gateway' | 'local'

class OpenclawBackend implements Backend {
  readonly name = KIND.backend
  readonly stallMs?: number
  private readonly settings: CliSettings
  private readonly context: BackendContext
  private readonly source: GatewaySource
  private readonly outbound: Outbound = createOutbound()
  private readonly closing = new AbortController()
  private readonly ways: Readonly<Record<Way, Pick<Backend, 'run' | 'close'>>>
  private readonly local: Backend
  private hasLoggedWhy = false

  constructor(settings: CliSettings, options: BackendOptions, context: BackendContext) {
    if (settings.timeoutMs !== undefined) this.stallMs = settings.timeoutMs
    this.settings = settings
    this.context = context
    const url = options.get('gateway_url', '')
    const { environment } = context
    this.source = {
      environment,
      url: url === '' ? '' : readUrl(url, 'gateway_url'),
      headers: readAuthHeaders(options, environment),
    }
    const agent = options.get('agent', DEFAULT_AGENT)
    this.local = createOneShotBackend(describeAgent({ agent, settings, context, isLocal: true }), settings, context)
    this.ways = {
      http: this.createHttp(agent),
      gateway: createOneShotBackend(describeAgent({ agent, settings, context, isLocal: false }), settings, context),
      local: this.local,
    }
  }

  validate(signal: AbortSignal) {
    return this.local.validate(signal)
  }

  async probe(signal: AbortSignal) {
    return (await this.local.probe?.(signal)) ?? []
  }

  async *run(turn: Turn, signal: AbortSignal): AsyncGenerator<BackendEvent> {
    const ends = AbortSignal.any([signal, this.closing.signal])
    const tried = new Set<Way>()
    let way: Way | undefined = await this.firstWay(ends)
    while (way !== undefined) {
      tried.add(way)
      let next: Way | undefined
      for await (const event of this.ways[way].run(turn, ends)) {
        if (event.type === 'failed' && !ends.aborted) next = this.nextWay(event.error, tried)
        if (next !== undefined) break
        yield event
      }
      way = next
    }
  }

  async close(): Promise<void> {
    this.closing.abort(turnCanceled())
    await Promise.all(Object.values(this.ways).map((way) => way.close()))
  }

  private async firstWay(signal: AbortSignal): Promise<Way> {
    if (this.settings.mode === 'session') return 'http'
    // A token that cannot be read does not matter here: the program has its own.
    const gateway = await findGateway(this.source).catch(() => undefined)
    return gateway !== undefined && (await isListening(gateway, this.outbound, signal)) ? 'gateway' : 'local'
  }

  /** The way to take after a refusal; undefined after any other error, and if that way was refused before. */
  private nextWay(error: MoleculeError, tried: ReadonlySet<Way>): Way | undefined {
    const state = gatewayStateIn(error)
    if (state === undefined) return undefined
    if (tried.has('http') && !this.hasLoggedWhy) {
      this.hasLoggedWhy = true
      const { log } = this.context
      log.info(
        { backend: this.name, reason: error.message },
        `backend "${this.name}": no warm gateway, running one-shot`,
      )
    }
    const next = state === 'away' ? 'local' : 'gateway'
    return tried.has(next) ? undefined : next
  }

  private createHttp(agent: string): Pick<Backend, 'run' | 'close'> {
    const { settings, context, source, outbound } = this
    const { maxTimeMs, timeoutMs } = settings
    const engine = createTurnEngine({ clock: context.clock, outputBytesMax: OUTPUT_BYTES_MAX, maxTimeMs })
    const model = (turn: Turn) => chooseModel(settings.model, turn.model, 'kept')
    const options = { context, outbound, source, agent, model, timeoutMs }
    return {
      run: (turn, signal) => engine.run((stream) => runHttpTurn(options, turn, stream), signal),
      close: () => engine.close(),
    }
  }
}

interface DescribeOptions {
  readonly agent: string
  readonly settings: CliSettings
  readonly context: BackendContext
  readonly isLocal: boolean
}

function describeAgent({ agent, settings, context, isLocal }: DescribeOptions): OneShotAgent {
  const timeoutSeconds = timeoutSecondsOf([settings.timeoutMs, settings.maxTimeMs])
  const folder = stateFolderOf(context.environment) ?? ''
  return {
    kind: KIND,
    install: 'install it with `npm install -g openclaw` and set it up with `openclaw setup`',
    auth: { variable: '', from: [], instead: [] },
    modelPrefix: 'kept',
    args: (call) => openclawArgs({ ...call, agent, isLocal, timeoutSeconds }),
    environment: () => ({}),
    createParser: createOpenclawParser,
    help: [['agent', '--help']],
    promptFile: 'message.md',
    ...(isLocal && {
      // A second run at the same time would fail: "failed to acquire gateway state ownership".
      enter: (stream) =>
        stream.pauseDuring(emitActivityDuring(localRuns.enter(folder, stream.signal), context.clock, stream.emit)),
    }),
  }
}
