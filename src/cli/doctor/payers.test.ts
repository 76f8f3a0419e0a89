import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { temporaryDir } from '../../../test/harness/process-harness.ts'
import {
  claudePayer,
  codexMissingKey,
  codexPayer,
  geminiPayer,
  hermesPayer,
  openclawPayer,
  opencodePayer,
} from './payers.ts'

function makeHome(t: TestContext) {
  const HOME = temporaryDir(t)
  const put = (path: string, text = '{}') => {
    mkdirSync(join(HOME, path, '..'), { recursive: true })
    writeFileSync(join(HOME, path), text)
  }
  return { HOME, put }
}

test('RT-13 claude: a cloud account wins over a key, and a key over a log-in', (t) => {
  const { HOME, put } = makeHome(t)
  assert.equal(claudePayer({ HOME }), undefined)
  put('.claude.json', '{"oauthAccount": {"emailAddress": "ada@example.org"}}')
  assert.equal(claudePayer({ HOME }), 'its own log-in')
  put('.claude/.credentials.json')
  assert.equal(claudePayer({ HOME }), 'its own log-in')
  const token = { HOME, CLAUDE_CODE_OAUTH_TOKEN: 'x' }
  assert.equal(claudePayer(token), 'CLAUDE_CODE_OAUTH_TOKEN')
  const key = { ...token, ANTHROPIC_API_KEY: 'x' }
  assert.equal(claudePayer(key), 'ANTHROPIC_API_KEY')
  assert.equal(claudePayer({ ...key, ANTHROPIC_AUTH_TOKEN: 'x' }), 'ANTHROPIC_AUTH_TOKEN')
  assert.equal(claudePayer({ ...key, CLAUDE_CODE_USE_BEDROCK: '1' }), 'the cloud account (CLAUDE_CODE_USE_BEDROCK)')
  assert.equal(claudePayer({ ...key, CLAUDE_CODE_USE_BEDROCK: '0' }), 'ANTHROPIC_API_KEY')
})

test('RT-13 RT-9 codex: CODEX_API_KEY wins over the log-in; OPENAI_API_KEY pays last', (t) => {
  const { HOME, put } = makeHome(t)
  assert.equal(codexPayer({ HOME }), undefined)
  assert.equal(codexPayer({ HOME, OPENAI_API_KEY: 'x' }), 'OPENAI_API_KEY')
  put('.codex/auth.json')
  assert.equal(codexPayer({ HOME, OPENAI_API_KEY: 'x' }), 'its own log-in')
  assert.equal(codexPayer({ HOME, CODEX_API_KEY: 'x' }), 'CODEX_API_KEY')
})

test('RT-13 codex: the provider of config.toml pays by its env_key, and a missing variable is named', (t) => {
  const { HOME, put } = makeHome(t)
  put('.codex/auth.json')
  const forms = [
    'model_provider = "corp"\n\n[model_providers.corp] # ours\nname = "Corp"\nenv_key = "CORP_KEY"\n',
    "model_provider = 'corp'\nmodel_providers.corp.env_key = 'CORP_KEY'\n",
    'model_provider="corp"\nmodel_providers.corp = { name = "Corp", env_key = "CORP_KEY" }\n',
    'profile = "work"\n[profiles.work]\nmodel_provider = "corp"\n[model_providers."corp"]\nenv_key = "CORP_KEY"\n',
  ]
  for (const form of forms) {
    put('.codex/config.toml', form)
    assert.equal(codexPayer({ HOME, CODEX_API_KEY: 'x' }), undefined, form)
    assert.match(codexMissingKey({ HOME }) ?? '', /^set CORP_KEY: it is the env_key of the provider "corp" in \//)
    assert.equal(codexPayer({ HOME, CORP_KEY: 'x' }), 'CORP_KEY')
    assert.equal(codexMissingKey({ HOME, CORP_KEY: 'x' }), undefined)
  }
  put('.codex/config.toml', 'model_provider = "local"\n[model_providers.local]\nbase_url = "http://127.0.0.1:1/v1"\n')
  assert.equal(codexPayer({ HOME }), 'the provider "local"')
  put('.codex/config.toml', 'model = "x" # model_provider = "corp"\n[model_providers.corp]\nenv_key = "CORP_KEY"\n')
  assert.equal(codexPayer({ HOME }), 'its own log-in')
})

test('RT-13 gemini: the choice in its dialogue wins, then the environment, then a log-in', (t) => {
  const { HOME, put } = makeHome(t)
  const env = { HOME, GEMINI_API_KEY: 'x' }
  assert.equal(geminiPayer({ HOME }), undefined)
  put('.gemini/oauth_creds.json')
  assert.equal(geminiPayer({ HOME }), 'its own log-in')
  assert.equal(geminiPayer(env), 'GEMINI_API_KEY')
  assert.equal(
    geminiPayer({ ...env, GOOGLE_GENAI_USE_VERTEXAI: 'true' }),
    'the cloud account (GOOGLE_GENAI_USE_VERTEXAI)',
  )
  put('.gemini/settings.json', '{ // mine\n "security": {"auth": {"selectedType": "oauth-personal"}}}')
  assert.equal(geminiPayer(env), 'its own log-in')
  put('.gemini/settings.json', '{"security": {"auth": {"selectedType": "gemini-api-key"}}}')
  assert.equal(geminiPayer({ HOME }), undefined)
})

test('RT-13 agents with many providers: their log-in, else every key that the model may use', (t) => {
  const { HOME, put } = makeHome(t)
  const env = { HOME, ANTHROPIC_API_KEY: 'x', OPENAI_API_KEY: 'x' }
  for (const payer of [opencodePayer, hermesPayer, openclawPayer]) {
    assert.equal(payer({ HOME }), undefined)
    assert.equal(payer(env), 'ANTHROPIC_API_KEY or OPENAI_API_KEY')
  }
  put('.local/share/opencode/auth.json')
  put('.hermes/.env')
  put('.openclaw/openclaw.json')
  for (const payer of [opencodePayer, hermesPayer, openclawPayer]) assert.equal(payer(env), 'its own log-in')
})
