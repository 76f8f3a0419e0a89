import assert from 'node:assert/strict'
import { test } from 'node:test'
import { present } from '../../../test/harness/present.ts'
import { foundChoices, freeName } from './agents.ts'

const found = (backend: string, more: object = {}) => ({
  backend,
  program: backend,
  installed: true,
  logged_in: true,
  warm: true,
  ...more,
})

test('CV-3 installed agents are offered, those that can start first, the others with the command to run, and what is missing last', () => {
  const choices = foundChoices([
    found('gemini', { logged_in: false, remedy: 'run "gemini" and log in, or set GEMINI_API_KEY' }),
    found('hermes', { installed: false, remedy: 'see the pages of Hermes' }),
    found('openclaw', { installed: false, remedy: 'npm install -g openclaw' }),
    found('codex', { version: '0.166' }),
    found('opencode', { problem: 'it does not start', remedy: 'run it by hand' }),
  ])
  assert.deepEqual(present(choices), [
    { backend: 'codex', title: 'Codex', name: 'Codex', mark: 'cx', version: '0.166', about: 'Logged in.' },
    {
      backend: 'gemini',
      title: 'Gemini',
      name: 'Gemini',
      mark: 'ge',
      about: 'Not logged in.',
      remedy: { text: 'Run "gemini" and log in, or set GEMINI_API_KEY.', command: 'gemini' },
    },
    {
      backend: 'opencode',
      title: 'OpenCode',
      name: 'OpenCode',
      mark: 'oc',
      about: 'It does not start.',
      remedy: { text: 'Run it by hand.' },
    },
    {
      backend: 'hermes',
      title: 'Hermes',
      name: 'Hermes',
      mark: 'he',
      isMissing: true,
      about: 'Not found on this machine. See the pages of Hermes.',
    },
    {
      backend: 'openclaw',
      title: 'OpenClaw',
      name: 'OpenClaw',
      mark: 'ow',
      isMissing: true,
      about: 'Not found on this machine. Install it with: npm install -g openclaw',
    },
  ])
})

test('CV-3 a name that is taken gets the lowest free number', () => {
  assert.equal(freeName('shop', new Set()), 'shop')
  assert.equal(freeName('shop', new Set(['shop', 'shop-2'])), 'shop-3')
})
