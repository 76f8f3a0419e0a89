/** Default and meaning of every key of `config.yaml`, for docs/configuration.md. A key without a row does not compile. */
import { TURNS_PER_HOUR_DEFAULT } from '../workspace.ts'
import {
  type configSchema,
  DEFAULT_ATTEMPTS,
  DEFAULT_RATE_LIMIT_PATIENCE,
  DEFAULT_RUNTIME,
  DEFAULT_SLOTS,
  type platformKeysSchema,
} from './config-file.ts'

interface ConfigKey {
  readonly default: string
  readonly text: string
}

export const CONFIG_KEYS: Readonly<Record<keyof (typeof configSchema)['shape'], ConfigKey>> = {
  name: { default: 'required', text: 'name of the workspace' },
  role: { default: 'empty', text: 'what the workspace is for; its peers read it' },
  runtime: {
    default: DEFAULT_RUNTIME,
    text: 'the backend, or `external` for a workspace that `molecule connect` runs',
  },
  model: { default: 'the default of the agent', text: 'the model that the agent uses' },
  tier: { default: '2', text: 'only 2, no sandbox; 1, a sandbox, is refused until there is one' },
  working_dir: {
    default: '`work/` in the folder of the workspace',
    text: 'folder the agent works in; read only at creation and when an owner writes the file through the API',
  },
  runtime_config: { default: 'empty', text: 'the keys of the next table, and the options of the backend' },
}

export const RUNTIME_CONFIG_KEYS: Readonly<Record<keyof (typeof platformKeysSchema)['shape'], ConfigKey>> = {
  max_attempts: { default: String(DEFAULT_ATTEMPTS), text: 'how often a message is tried, the first attempt included' },
  max_concurrent_tasks: {
    default: String(DEFAULT_SLOTS),
    text: 'how many turns run at a time, each in another conversation',
  },
  max_cost_usd_per_day: {
    default: 'no limit',
    text: 'how many US dollars the turns of a UTC day may cost; at the limit messages wait and the owner is asked',
  },
  max_turns_per_hour: {
    default: String(TURNS_PER_HOUR_DEFAULT),
    text: 'how many turns an agent that calls a model may run in an hour; further messages wait',
  },
  model: { default: '`model` above', text: 'the same as `model` above, and wins over it' },
  rate_limit_patience: {
    default: `\`${DEFAULT_RATE_LIMIT_PATIENCE}\``,
    text: 'how long a message waits for a rate limit that names no end, after its attempts are used up; `0s` to `24h`',
  },
  team_memory: {
    default: '`true`',
    text: 'whether the agent is given what its team remembers; `false`: only what it remembers itself',
  },
  working_dir: { default: '`working_dir` above', text: 'the same as `working_dir` above, which wins' },
}
