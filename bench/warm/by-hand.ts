/**
 * Each agent CLI driven by hand in its own warm protocol, with as little around it as there can be: what a message
 * costs when nothing but the CLI is in the way. It checks nothing, keeps nothing and recovers from nothing.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Cli } from '../../test/agents/clis.ts'

export interface ByHand {
  /** One message in the one conversation; gives the reply's text. */
  ask(text: string): Promise<string>
  close(): Promise<void>
}

export interface Driven {
  readonly bin: string
  readonly model: string
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

export type Drive = (driven: Driven) => Promise<ByHand>

export const byHand = {
  claude: driveClaude,
  codex: driveCodex,
  gemini: (driven: Driven) =>
    driveAcp(driven, ['--acp', '--skip-trust', '--approval-mode', 'yolo', '-m', driven.model]),
  opencode: (driven: Driven) => driveAcp(driven, ['acp']),
} satisfies Partial<Record<Cli['name'], Drive>>

async function driveClaude(driven: Driven): Promise<ByHand> {
  const child = start(driven, [
    ...['-p', '--input-format', 'stream-json', '--output-format', 'stream-json', '--verbose'],
    ...['--include-partial-messages', '--dangerously-skip-permissions', '--model', driven.model],
  ])
  const lines = linesOf(child)
  return {
    async ask(text) {
      const message = { role: 'user', content: [{ type: 'text', text }] }
      child.stdin.write(`${JSON.stringify({ type: 'user', message })}\n`)
      const result = await lines.next(({ type }) => type === 'result')
      return String(result['result'])
    },
    close: () => end(child),
  }
}

async function driveCodex(driven: Driven): Promise<ByHand> {
  const child = start(driven, ['app-server', '--disable', 'plugins'])
  const rpc = rpcOf(child)
  await rpc.call('initialize', { clientInfo: { name: 'by-hand', version: '1' } })
  rpc.tell('initialized', {})
  const policy = { approvalPolicy: 'never', sandbox: 'danger-full-access' }
  const started = await rpc.call('thread/start', { cwd: driven.cwd, model: driven.model, ...policy })
  const threadId = (started['thread'] as Line)['id']
  return {
    async ask(text) {
      let said = ''
      const completed = rpc.lines.next(({ method, params }) => {
        const item = (params as Line | undefined)?.['item'] as Line | undefined
        if (method === 'item/completed' && item?.['type'] === 'agentMessage') said = String(item['text'])
        return method === 'turn/completed'
      })
      await rpc.call('turn/start', { threadId, input: [{ type: 'text', text }] })
      await completed
      return said
    },
    close: () => end(child),
  }
}

async function driveAcp(driven: Driven, args: readonly string[]): Promise<ByHand> {
  const child = start(driven, args)
  const rpc = rpcOf(child)
  await rpc.call('initialize', { protocolVersion: 1, clientCapabilities: {} })
  const { sessionId } = await rpc.call('session/new', { cwd: driven.cwd, mcpServers: [] })
  return {
    async ask(text) {
      let said = ''
      const stop = rpc.lines.each(({ method, params }) => {
        const update = (params as Line | undefined)?.['update'] as Line | undefined
        if (method !== 'session/update' || update?.['sessionUpdate'] !== 'agent_message_chunk') return
        said += (update['content'] as Line)['text']
      })
      await rpc.call('session/prompt', { sessionId, prompt: [{ type: 'text', text }] })
      stop()
      return said
    },
    close: () => end(child),
  }
}

function start({ bin, cwd, env }: Driven, args: readonly string[]): ChildProcessWithoutNullStreams {
  // As the platform passes it on: some programs are slower where they find more in it.
  const child = spawn(bin, args, { cwd, env: { ...process.env, ...env }, detached: true })
  child.stderr.resume()
  return child
}

/** The group: a launcher may stand between us and the program. */
async function end(child: ChildProcessWithoutNullStreams): Promise<void> {
  if (child.exitCode !== null || child.pid === undefined) return
  const exit = once(child, 'exit')
  process.kill(-child.pid, 'SIGKILL')
  await exit
}

type Line = Readonly<Record<string, unknown>>

interface Lines {
  /** The next line that is wanted. */
  next(wanted: (line: Line) => boolean): Promise<Line>
  /** Every line from now on, until stopped. */
  each(hear: (line: Line) => void): () => void
}

function linesOf(child: ChildProcessWithoutNullStreams): Lines {
  const listeners = new Set<(line: Line) => void>()
  // An agent that ends, ends every wait for a line of it.
  const ended = Promise.withResolvers<never>()
  child.once('exit', () => ended.reject(new Error('the agent ended')))
  ended.promise.catch(() => undefined)
  createInterface({ input: child.stdout }).on('line', (text) => {
    if (!text.startsWith('{')) return
    const line = JSON.parse(text) as Line
    for (const listener of listeners) listener(line)
  })
  const each: Lines['each'] = (hear) => {
    listeners.add(hear)
    return () => listeners.delete(hear)
  }
  return {
    each,
    next(wanted) {
      const found = Promise.withResolvers<Line>()
      const stop = each((line) => {
        if (!wanted(line)) return
        stop()
        found.resolve(line)
      })
      return Promise.race([found.promise, ended.promise])
    },
  }
}

function rpcOf(child: ChildProcessWithoutNullStreams) {
  const lines = linesOf(child)
  let calls = 0
  const write = (line: Line) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...line })}\n`)
  return {
    lines,
    tell: (method: string, params: Line) => write({ method, params }),
    async call(method: string, params: Line): Promise<Line> {
      const id = ++calls
      const answer = lines.next((line) => line['id'] === id && line['method'] === undefined)
      write({ id, method, params })
      const { result, error } = await answer
      if (error !== undefined) throw new Error(`${method}: ${JSON.stringify(error)}`)
      return result as Line
    },
  }
}
