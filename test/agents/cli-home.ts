/**
 * A home folder for one real CLI: a temporary folder that holds everything the CLI reads and writes, configured for the
 * fake model. The CLI reads no file of the user's home and requests no telemetry, update or catalogue.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { FakeModel } from '../fakes/agents/fake-model.ts'
import type { Cli } from './clis.ts'

export interface CliHome {
  readonly folder: string
  /** Variables for the platform that runs the CLI, or for the CLI itself when it is started by hand. */
  readonly env: Readonly<Record<string, string>>
  /** The model that a workspace must name, in the form of the CLI. */
  readonly model: string
  /** Another model, which the CLI does not take by itself. */
  readonly otherModel: string
  remove(): Promise<void>
}

interface CliSetup {
  readonly model: string
  readonly otherModel: string
  readonly env: Readonly<Record<string, string>>
  /** Files of the home: path and text. */
  readonly files: Readonly<Record<string, string>>
}

type MakeCliSetup = (folder: string, model: FakeModel, key: string) => CliSetup

export async function makeCliHome(cli: Cli, model: FakeModel, key: string): Promise<CliHome> {
  const folder = await mkdtemp(join(tmpdir(), `molecule-${cli.name}-home-`))
  const setup = SETUPS[cli.name](folder, model, key)
  for (const [name, text] of Object.entries(setup.files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), text, { mode: 0o600 })
  }
  return {
    folder,
    env: { ...common(folder), ...setup.env },
    model: setup.model,
    otherModel: setup.otherModel,
    remove: () => rm(folder, { recursive: true, force: true, maxRetries: 5 }),
  }
}

const common = (folder: string): Record<string, string> => ({
  HOME: folder,
  XDG_CONFIG_HOME: join(folder, '.config'),
  XDG_DATA_HOME: join(folder, '.local/share'),
  XDG_STATE_HOME: join(folder, '.local/state'),
  XDG_CACHE_HOME: join(folder, '.cache'),
  DO_NOT_TRACK: '1',
  NO_UPDATE_NOTIFIER: '1',
})

const claude: MakeCliSetup = (folder, model, key) => ({
  model: 'claude-sonnet-4-5',
  otherModel: 'claude-haiku-4-5',
  env: {
    CLAUDE_CONFIG_DIR: join(folder, '.claude'),
    ANTHROPIC_BASE_URL: model.url,
    ANTHROPIC_API_KEY: key,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_AUTOUPDATER: '1',
    DISABLE_TELEMETRY: '1',
    DISABLE_ERROR_REPORTING: '1',
    // The fake model returns no thinking, and claude refuses a turn that lacks it when thinking is on.
    MAX_THINKING_TOKENS: '0',
    // claude refuses permission bypass as root, and containers often run as root.
    IS_SANDBOX: '1',
  },
  files: {},
})

const codex: MakeCliSetup = (folder, model, key) => ({
  model: 'gpt-5.1-codex',
  otherModel: 'gpt-5.1-codex-mini',
  env: { CODEX_HOME: join(folder, '.codex'), OPENAI_API_KEY: key },
  files: {
    '.codex/config.toml': [
      'model_provider = "fake"',
      'check_for_update_on_startup = false',
      '[analytics]',
      'enabled = false',
      '[model_providers.fake]',
      'name = "fake"',
      `base_url = "${model.codexUrl}/v1"`,
      'wire_api = "responses"',
      'env_key = "OPENAI_API_KEY"',
      'request_max_retries = 1',
      'stream_max_retries = 1',
      '',
    ].join('\n'),
  },
})

const gemini: MakeCliSetup = (_, model, key) => ({
  model: 'gemini-2.5-pro',
  otherModel: 'gemini-2.5-flash',
  env: { GOOGLE_GEMINI_BASE_URL: model.url, GEMINI_API_KEY: key },
  files: {
    '.gemini/settings.json': JSON.stringify({
      security: { auth: { selectedType: 'gemini-api-key' } },
      privacy: { usageStatisticsEnabled: false },
      telemetry: { enabled: false },
      general: { disableAutoUpdate: true, enableAutoUpdate: false, maxAttempts: 2 },
    }),
  },
})

const opencode: MakeCliSetup = (folder, model, key) => ({
  model: 'fake/any',
  otherModel: 'fake/other',
  env: {
    OPENCODE_CONFIG: join(folder, 'opencode.json'),
    OPENCODE_DISABLE_AUTOUPDATE: '1',
    OPENCODE_DISABLE_MODELS_FETCH: '1',
    OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
    OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
  },
  files: {
    'opencode.json': JSON.stringify({
      autoupdate: false,
      share: 'disabled',
      model: 'fake/any',
      small_model: 'fake/any',
      provider: {
        fake: {
          npm: '@ai-sdk/openai-compatible',
          name: 'fake',
          options: { baseURL: `${model.url}/v1`, apiKey: key },
          models: { any: { name: 'any', tool_call: true }, other: { name: 'other', tool_call: true } },
        },
      },
    }),
  },
})

const openclaw: MakeCliSetup = (_, model, key) => ({
  model: 'fake/any',
  otherModel: 'fake/other',
  env: {},
  files: {
    '.openclaw/openclaw.json': JSON.stringify({
      models: {
        providers: {
          fake: {
            baseUrl: `${model.url}/v1`,
            apiKey: key,
            api: 'openai-completions',
            models: [{ id: 'any', name: 'any', contextWindow: 200_000, maxTokens: 8_000 }],
          },
        },
      },
      agents: { defaults: { model: { primary: 'fake/any' } } },
      // For the steps with a gateway; the others run while none listens.
      gateway: {
        mode: 'local',
        auth: { mode: 'token', token: 'sk-gateway-tests-only' },
        http: { endpoints: { chatCompletions: { enabled: true } } },
      },
      // With tool search on, openclaw hides its shell tool behind a search, which the fake model does not use.
      tools: { toolSearch: false },
    }),
  },
})

const SETUPS: Readonly<Record<Cli['name'], MakeCliSetup>> = { claude, codex, gemini, opencode, openclaw }
