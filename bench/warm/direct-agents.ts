/**
 * Each agent CLI driven directly in its own warm protocol, with as little around it as there can be: what a message
 * costs when nothing but the CLI is in the way. It checks nothing, keeps nothing and recovers from nothing.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Cli } from '../../test/agents/clis.ts'

export interface DirectAgent {
  /** One message in the one conversation; gives the reply's text. */
  ask(text: string): Promise<string>
  close(): Promise<void>
}

export interface DirectAgentOptions {
  readonly bin: string
  readonly model: string
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

export type StartDirectAgent = (options: DirectAgentOptions) => Promise<DirectAgent>

export const directAgents = {
  claude: startClaude,
  codex: startCodex,
  gemini: (options: DirectAgentOptions) =>
    startAcp(options, ['--acp', '--skip-trust', '--approval-mode', 'yolo', '-m', options.model]),
  opencode: (options: DirectAgentOptions) => startAcp(options, ['acp']),
} satisfies Partial<Record<Cli['name'], StartDirectAgent>>

async function startClaude(options: DirectAgentOptions): Promise<DirectAgent> {
  const child = start(options, [
    ...['-p', '--input-format', 'stream-json', '--output-format', 'stream-json', '--verbose'],
    ...['--include-partial-messages', '--dangerously-skip-permissions', '--model', options.model],
  ])
  const lines = jsonLinesOf(child)
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

async function startCodex(options: DirectAgentOptions): Promise<DirectAgent> {
  const child = start(options, ['app-server', '--disable', 'plugins'])
  const rpc = rpcOf(child)
  await rpc.call('initialize', { clientInfo: { name: 'by-hand', version: '1' } })
  rpc.tell('initialized', {})
  const policy = { approvalPolicy: 'never', sandbox: 'danger-full-access' }
  const started = await rpc.call('thread/start', { cwd: options.cwd, model: options.model, ...policy })
  const threadId = (started['thread'] as JsonLine)['id']
  return {
    async ask(text) {
      let said = ''
      const completed = rpc.lines.next(({ method, params }) => {
        const item = (params as JsonLine | undefined)?.['item'] as JsonLine | undefined
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

async function startAcp(options: DirectAgentOptions, args: readonly string[]): Promise<DirectAgent> {
  const child = start(options, args)
  const rpc = rpcOf(child)
  await rpc.call('initialize', { protocolVersion: 1, clientCapabilities: {} })
  const { sessionId } = await rpc.call('session/new', { cwd: options.cwd, mcpServers: [] })
  return {
    async ask(text) {
      let said = ''
      const stop = rpc.lines.each(({ method, params }) => {
        const update = (params as JsonLine | undefined)?.['update'] as JsonLine | undefined
        if (method !== 'session/update' || update?.['sessionUpdate'] !== 'agent_message_chunk') return
        said += (update['content'] as JsonLine)['text']
      })
      await rpc.call('session/prompt', { sessionId, prompt: [{ type: 'text', text }] })
      stop()
      return said
    },
    close: () => end(child),
  }
}

function start({ bin, cwd, env }: DirectAgentOptions, args: readonly string[]): ChildProcessWithoutNullStreams {
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

type JsonLine = Readonly<Record<string, unknown>>

interface JsonLines {
  /** The next line that is wanted. */
  next(wanted: (line: JsonLine) => boolean): Promise<JsonLine>
  /** Every line from now on, until stopped. */
  each(hear: (line: JsonLine) => void): () => void
}

function jsonLinesOf(child: ChildProcessWithoutNullStreams): JsonLines {
  const listeners = new Set<(line: JsonLine) => void>()
  // An agent that ends, ends every wait for a line of it.
  const ended = Promise.withResolvers<never>()
  child.once('exit', () => ended.reject(new Error('the agent ended')))
  ended.promise.catch(() => undefined)
  createInterface({ input: child.stdout }).on('line', (text) => {
    if (!text.startsWith('{')) return
    const line = JSON.parse(text) as JsonLine
    for (const listener of listeners) listener(line)
  })
  const each: JsonLines['each'] = (hear) => {
    listeners.add(hear)
    return () => listeners.delete(hear)
  }
  return {
    each,
    next(wanted) {
      const found = Promise.withResolvers<JsonLine>()
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
  const lines = jsonLinesOf(child)
  let calls = 0
  const write = (line: JsonLine) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...line })}\n`)
  return {
    lines,
    tell: (method: string, params: JsonLine) => write({ method, params }),
    async call(method: string, params: JsonLine): Promise<JsonLine> {
      const id = ++calls
      const answer = lines.next((line) => line['id'] === id && line['method'] === undefined)
      write({ id, method, params })
      const { result, error } = await answer
      if (error !== undefined) throw new Error(`${method}: ${JSON.stringify(error)}`)
      return result as JsonLine
    },
  }
}
