/**
 * Runs a real CLI: the fake model, a home folder for the CLI, and a real platform whose workspaces run it. Tests use the
 * platform over HTTP and find processes in /proc.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isFinal, isInterrupted, type Json, type Task } from '../../src/protocol/a2a.ts'
import { type FakeModel, MODEL_KEY, startFakeModel } from '../fakes/agents/fake-model.ts'
import { type LiveProcess, liveProcesses } from '../harness/live-processes.ts'
import { openStream } from '../harness/open-door.ts'
import { type PlatformUnderTest, startPlatform } from '../harness/platform.ts'
import { type CliHome, makeCliHome } from './cli-home.ts'
import type { Cli } from './clis.ts'
import { installedBin } from './install-cli.ts'

export interface AgentHarnessOptions {
  readonly cli: Cli
  /** The backend's name. */
  readonly runtime: string
  /** An API key that the model refuses. */
  readonly key?: string
  readonly model?: FakeModel
  /** Another program than that of the CLI, with another home. Its workspaces name no model. */
  readonly own?: {
    readonly bin: string
    readonly makeHome: (model: FakeModel, key: string) => Promise<CliHome>
  }
}

export interface AgentHarness {
  readonly bin: string
  readonly home: CliHome
  readonly platform: PlatformUnderTest
  /** Creates a workspace with permission bypass, one slot and one attempt, so that a failure is not retried; its id. */
  workspace(options?: Readonly<Record<string, Json>>, shape?: { slots?: number; attempts?: number }): Promise<string>
  /** Sends a message and waits for its result; the task. */
  ask(workspaceId: string, text: string, contextId: string): Promise<Task>
  /** Sends a message without waiting; the id of its task. */
  begin(workspaceId: string, text: string, contextId: string): Promise<string>
  /** Sends a message; the text of the reply after each piece of its stream. */
  stream(workspaceId: string, text: string): Promise<string[]>
  /** Stops the platform with SIGTERM and starts another on the same data. */
  restart(): Promise<void>
  /** Every live process that a turn started in this home. */
  processes(): LiveProcess[]
  /** The processes of the CLI itself, without its children. */
  agentProcesses(): LiveProcess[]
  /** Stops the platform with SIGTERM. */
  stop(): Promise<void>
  /** Kills the platform and removes all folders. */
  dispose(): Promise<void>
}

export async function openAgentHarness({
  cli,
  runtime,
  key = MODEL_KEY,
  model,
  own,
}: AgentHarnessOptions): Promise<AgentHarness> {
  const ownModel = model ?? (await startFakeModel())
  const home = await (own?.makeHome(ownModel, key) ?? makeCliHome(cli, ownModel, key))
  const dataDir = await mkdtemp(join(tmpdir(), 'molecule-agents-'))
  const bin = own?.bin ?? installedBin(cli)
  const start = () => startPlatform({ dataDir, env: home.env })
  let platform = await start()
  const params = (text: string, contextId: string) => ({
    message: { messageId: crypto.randomUUID(), contextId, role: 'ROLE_USER', parts: [{ text }] },
  })
  const processes = () => processesIn(home.folder)
  return {
    bin,
    home,
    get platform() {
      return platform
    },
    async workspace(options = {}, { slots = 1, attempts = 1 } = {}) {
      const { status, body } = await platform.request('POST', '/workspaces', {
        name: cli.name,
        runtime,
        ...(own === undefined && { model: home.model }),
        max_attempts: attempts,
        max_concurrent_tasks: slots,
        runtime_config: {
          ...(own === undefined && { bin }),
          permission: 'bypass',
          max_turns_per_hour: 1000,
          // A refused message fails instead of waiting for an hour.
          rate_limit_patience: '0s',
          ...options,
        },
      })
      assert.equal(status, 201, JSON.stringify(body))
      return body.id
    },
    async ask(workspaceId, text, contextId) {
      const call = params(text, contextId)
      for (;;) {
        const { body } = await platform.rpc(workspaceId, 'SendMessage', call)
        const task: Task | undefined = body.result?.task
        assert.ok(task, JSON.stringify(body).slice(0, 500))
        // Some agents take longer than a call may block (openclaw retries a refused call for three minutes). Sending the
        // same message again attaches to its task. The timeout of the step ends this loop.
        if (isFinal(task.status.state) || isInterrupted(task.status.state)) return task
      }
    },
    async begin(workspaceId, text, contextId) {
      const call = { ...params(text, contextId), configuration: { returnImmediately: true } }
      const { body } = await platform.rpc(workspaceId, 'SendMessage', call)
      return body.result.task.id
    },
    async stream(workspaceId, text) {
      const call = { jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params: params(text, crypto.randomUUID()) }
      const { token, url } = platform
      const stream = await openStream(`${url}/workspaces/${workspaceId}/a2a`, { token, body: JSON.stringify(call) })
      assert.equal(await stream.ended, 'ended')
      const updates = stream.events.flatMap(({ data }) => data.result?.artifactUpdate ?? [])
      const texts: string[] = []
      for (const { append, artifact } of updates) {
        const piece = artifact.parts.map((part: { text?: string }) => part.text ?? '').join('')
        texts.push(append === true ? `${texts.at(-1) ?? ''}${piece}` : piece)
      }
      return texts
    },
    async restart() {
      await platform.stop()
      platform = await start()
    },
    processes,
    agentProcesses() {
      const all = processes()
      // Between fork and exec, a child still has the command line of its parent.
      const isChild = ({ parentPid }: LiveProcess) => all.some(({ pid }) => pid === parentPid)
      // A look at the version is no agent, and may run beside the last one that is allowed.
      const isLook = ({ commandLine }: LiveProcess) => commandLine.endsWith(' --version')
      return all.filter((one) => one.commandLine.includes(bin) && !isChild(one) && !isLook(one))
    },
    async stop() {
      await platform.stop()
    },
    async dispose() {
      await platform.stop('SIGKILL')
      if (model === undefined) await ownModel.stop()
      await home.remove()
      await rm(dataDir, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/**
 * Processes whose environment has this home and a mark; the platform has the home too, but no mark. Reading /proc takes
 * a while, in which a process may end and another begin: a second look keeps only those that existed at the same time.
 */
function processesIn(folder: string): LiveProcess[] {
  const look = () =>
    liveProcesses().filter(
      ({ environment }) => environment.includes(`\0HOME=${folder}\0`) && environment.includes('\0MOLECULE_TURN='),
    )
  const found = look()
  const again = look()
  return found.filter((one) => again.some(({ pid, commandLine }) => pid === one.pid && commandLine === one.commandLine))
}
