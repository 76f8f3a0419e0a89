/**
 * An MCP server that is a program of this machine. It is started and supervised like every other process of a turn; our
 * own transport talks to it over stdin and stdout.
 */
import type { Client, JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import type { Clock } from '../../clock.ts'
import type { MoleculeError } from '../../errors.ts'
import type { Log } from '../../log.ts'
import type { Processes, RunningProcess, SpawnOptions } from '../../process/processes.ts'
import { unexpectedExit } from '../engine/failure/agent-errors.ts'
import { OUTPUT_BYTES_MAX } from '../engine/turn-engine.ts'
import type { AgentProcess } from '../engine/warm/warm-turn.ts'
import { connectClient } from './connect-client.ts'

export interface McpServerProcess extends AgentProcess {
  /** Connects at the first call. Rejects if the program is no MCP server or has ended. */
  connect(signal: AbortSignal): Promise<Client>
  /** Why the process ended; undefined while it runs. */
  death(): MoleculeError | undefined
}

export interface McpServerProcessOptions {
  readonly processes: Processes
  readonly spawning: Omit<SpawnOptions, 'stderrBytesKept'>
  /** The command as the owner wrote it. */
  readonly name: string
  readonly clock: Clock
  readonly log: Log
}

export function startMcpServerProcess({
  processes,
  spawning,
  name,
  clock,
  log,
}: McpServerProcessOptions): McpServerProcess {
  let death: MoleculeError | undefined
  const transport = createTransport(() => running)
  const running: RunningProcess = processes.start({
    ...spawning,
    lineBytesMax: OUTPUT_BYTES_MAX,
    onLine(line) {
      const message = parseMessage(line)
      if (message === undefined) log.debug({ line: line.slice(0, 200) }, 'a line of the MCP server is not a message')
      else transport.onmessage?.(message)
    },
  })
  const ended = running.ended.then((result) => {
    const facts = { command: name, timeout: '', outputBytesMax: OUTPUT_BYTES_MAX, nowMs: clock.nowMs() }
    death = unexpectedExit(result, facts)
    transport.onclose?.()
  })
  let connected: Promise<Client> | undefined
  return {
    running,
    ended,
    stop: () => running.stop(),
    connect(signal) {
      connected ??= connectClient(transport, signal)
      return connected
    },
    death: () => death,
  }
}

function createTransport(running: () => RunningProcess): Transport {
  return {
    // The process runs already.
    start: () => Promise.resolve(),
    async send(message) {
      if (await running().write(`${JSON.stringify(message)}\n`)) return
      throw new Error('the program no longer reads its input')
    },
    async close() {
      await running().stop()
    },
  }
}

function parseMessage(line: string): JSONRPCMessage | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null && 'jsonrpc' in value ? (value as JSONRPCMessage) : undefined
  } catch {
    return undefined
  }
}
