/**
 * Drives each agent CLI directly in its own warm protocol, with as little code as possible: the cost of a message
 * without Molecule. It checks nothing, stores nothing and recovers from nothing.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Cli } from '../../test/agents/clis.ts'

export interface DirectAgent {
  /** Sends a message in its only conversation; returns the text of the reply. */
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
  await rpc.call('initialize', { clientInfo: { name: 'direct', version: '1' } })
  rpc.notify('initialized', {})
  const policy = { approvalPolicy: 'never', sandbox: 'danger-full-access' }
  const started = await rpc.call('thread/start', { cwd: options.cwd, model: options.model, ...policy })
  const threadId = (started['thread'] as JsonLine)['id']
  return {
    async ask(text) {
      let reply = ''
      const completed = rpc.lines.next(({ method, params }) => {
        const item = (params as JsonLine | undefined)?.['item'] as JsonLine | undefined
        if (method === 'item/completed' && item?.['type'] === 'agentMessage') reply = String(item['text'])
        return method === 'turn/completed'
      })
      await rpc.call('turn/start', { threadId, input: [{ type: 'text', text }] })
      await completed
      return reply
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
      let reply = ''
      const stop = rpc.lines.each(({ method, params }) => {
        const update = (params as JsonLine | undefined)?.['update'] as JsonLine | undefined
        if (method !== 'session/update' || update?.['sessionUpdate'] !== 'agent_message_chunk') return
        reply += (update['content'] as JsonLine)['text']
      })
      await rpc.call('session/prompt', { sessionId, prompt: [{ type: 'text', text }] })
      stop()
      return reply
    },
    close: () => end(child),
  }
}

function start({ bin, cwd, env }: DirectAgentOptions, args: readonly string[]): ChildProcessWithoutNullStreams {
  // The same environment as through the platform: some programs are slower with more variables.
  const child = spawn(bin, args, { cwd, env: { ...process.env, ...env }, detached: true })
  child.stderr.resume()
  return child
}

/** Kills the process group, because the child may be a launcher of the program. */
async function end(child: ChildProcessWithoutNullStreams): Promise<void> {
  if (child.exitCode !== null || child.pid === undefined) return
  const exit = once(child, 'exit')
  process.kill(-child.pid, 'SIGKILL')
  await exit
}

type JsonLine = Readonly<Record<string, unknown>>

interface JsonLines {
  /** The next line that matches. */
  next(matches: (line: JsonLine) => boolean): Promise<JsonLine>
  /** Calls back for every later line until the returned function is called. */
  each(listener: (line: JsonLine) => void): () => void
}

function jsonLinesOf(child: ChildProcessWithoutNullStreams): JsonLines {
  const listeners = new Set<(line: JsonLine) => void>()
  // When the agent exits, every wait for one of its lines rejects.
  const ended = Promise.withResolvers<never>()
  child.once('exit', () => ended.reject(new Error('the agent ended')))
  ended.promise.catch(() => undefined)
  createInterface({ input: child.stdout }).on('line', (text) => {
    if (!text.startsWith('{')) return
    const line = JSON.parse(text) as JsonLine
    for (const listener of listeners) listener(line)
  })
  const each: JsonLines['each'] = (listener) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
  return {
    each,
    next(matches) {
      const found = Promise.withResolvers<JsonLine>()
      const stop = each((line) => {
        if (!matches(line)) return
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
    notify: (method: string, params: JsonLine) => write({ method, params }),
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
