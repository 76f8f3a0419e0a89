/**
 * The ACP agents that the `acp` backend is tested with: three packages of their own, in exact versions, and two CLIs that
 * speak ACP themselves. Each runs against the fake model in a home of its own. An adapter runs the CLI of this suite, not
 * the copy that npm would install beside it.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { FakeModel } from '../fakes/agents/fake-model.ts'
import { type CliHome, makeCliHome } from './cli-home.ts'
import { type Cli, findCli } from './clis.ts'
import { ensureInstalled, type Installable, installedBin } from './install-cli.ts'

export interface AcpSubject {
  readonly name: string
  /** Its own package; undefined for a CLI that speaks ACP itself. */
  readonly own?: Installable
  /** The CLI that it is, that it runs, or whose settings it reads. */
  readonly cli: Cli['name']
  /** Arguments of its program. */
  readonly args: string
  /** What its home has in addition to that of the CLI. */
  readonly setUp: (home: CliHome, model: FakeModel, key: string) => Promise<Readonly<Record<string, string>>>
  /** Whether it asks before it runs a command of the shell. */
  readonly asks: boolean
  /** It hides the tools of MCP servers behind a search, which the fake model does not use. */
  readonly hidesTools?: boolean
}

const nothing = async () => ({})

export const ACP_AGENTS: readonly AcpSubject[] = [
  {
    name: 'claude-agent-acp',
    own: {
      name: 'claude-agent-acp',
      version: '0.100.0',
      npmPackage: '@agentclientprotocol/claude-agent-acp',
      bin: 'node_modules/.bin/claude-agent-acp',
      omitsOptional: true,
    },
    cli: 'claude',
    args: '',
    setUp: async () => ({ CLAUDE_CODE_EXECUTABLE: installedBin(findCli('claude')), ENABLE_TOOL_SEARCH: 'false' }),
    asks: true,
  },
  {
    name: 'codex-acp',
    own: {
      name: 'codex-acp',
      version: '2.6.0',
      npmPackage: '@agentclientprotocol/codex-acp',
      bin: 'node_modules/.bin/codex-acp',
      omitsOptional: true,
    },
    cli: 'codex',
    args: '',
    async setUp({ folder }) {
      const file = join(folder, '.codex/config.toml')
      // The models that it knows get their tools in a form that the fake model does not speak.
      await writeFile(file, `model = "gpt-5.1-codex"\n${await readFile(file, 'utf8')}`)
      return { CODEX_PATH: installedBin(findCli('codex')) }
    },
    asks: false,
  },
  {
    name: 'qwen-code',
    own: {
      name: 'qwen-code',
      version: '0.24.4',
      npmPackage: '@qwen-code/qwen-code',
      bin: 'node_modules/.bin/qwen',
    },
    cli: 'gemini',
    args: ' --acp --auth-type openai',
    async setUp({ folder }, model, key) {
      const settings = {
        privacy: { usageStatisticsEnabled: false },
        telemetry: { enabled: false },
        general: { disableAutoUpdate: true, enableAutoUpdate: false },
        tools: { approvalMode: 'default' },
        security: { auth: { selectedType: 'openai' } },
      }
      const file = join(folder, '.qwen/settings.json')
      await mkdir(dirname(file))
      await writeFile(file, JSON.stringify(settings))
      return { OPENAI_API_KEY: key, OPENAI_BASE_URL: `${model.url}/v1`, OPENAI_MODEL: 'any' }
    },
    asks: true,
    hidesTools: true,
  },
  { name: 'gemini', cli: 'gemini', args: ' --acp --skip-trust -m gemini-2.5-pro', setUp: nothing, asks: true },
  { name: 'opencode', cli: 'opencode', args: ' acp', setUp: nothing, asks: false },
]

/** Installs the packages and the CLIs that they need; the names of those that were missing. */
export async function ensureAcpInstalled(): Promise<readonly string[]> {
  const installed: string[] = []
  for (const { own, cli } of ACP_AGENTS) {
    for (const one of [findCli(cli), ...(own === undefined ? [] : [own])]) {
      if ((await ensureInstalled(one)) !== undefined) installed.push(`${one.name} ${one.version}`)
    }
  }
  return installed
}

export async function makeAcpHome(agent: AcpSubject, model: FakeModel, key: string): Promise<CliHome> {
  const home = await makeCliHome(findCli(agent.cli), model, key)
  const env = await agent.setUp(home, model, key)
  return { ...home, env: { ...home.env, ...env } }
}

/** The program that answers over ACP. */
export const acpBin = ({ own, cli }: AcpSubject): string => installedBin(own ?? findCli(cli))
