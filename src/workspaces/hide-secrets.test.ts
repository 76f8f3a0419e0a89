import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Json } from '../protocol/a2a.ts'
import { hideSecrets, holdsHidden } from './hide-secrets.ts'

const MASK = '[hidden]'

test('PL-12 option values under the name of a secret, and every header, are hidden; empty ones are shown', () => {
  const given = {
    api_key: 'x',
    password: '',
    tokens: ['a', 7, true],
    headers: { 'X-Any': 'x' },
    plain: 'x',
    nested: [{ headers: '' }, { headers: null }, { headers: ['x'] }, { secret: null }] as Json[],
  }
  const hidden = '[hidden]'
  assert.deepEqual(hideSecrets(given), {
    api_key: hidden,
    password: '',
    tokens: [hidden, 7, true],
    headers: hidden,
    plain: 'x',
    nested: [{ headers: '' }, { headers: null }, { headers: hidden }, { secret: null }],
  })
  assert.equal(hideSecrets('x'), 'x')
})

test('PL-12 RE-9 secrets of an MCP server are hidden in an object and in JSON text alike', () => {
  const server = {
    command: 'npx',
    args: ['-y', 'server', '--token', 'x1y2', '--api-key=x1y2', '--port', '80', 'https://me:x1y2@a.test/p'],
    env: { GITHUB_TOKEN: 'x1y2', HOME: '/home/x1y2', FROM: '${GITHUB_TOKEN}' },
    headers: { 'X-Any': 'x1y2' },
  }
  const shown = {
    command: 'npx',
    args: ['-y', 'server', '--token', MASK, `--api-key=${MASK}`, '--port', '80', `https://${MASK}@a.test/p`],
    env: { GITHUB_TOKEN: MASK, HOME: MASK, FROM: '${GITHUB_TOKEN}' },
    headers: MASK,
  }
  assert.deepEqual(hideSecrets({ git: server }, 'mcp_servers'), { git: shown })
  const text = hideSecrets(JSON.stringify({ git: server }, undefined, 2), 'mcp_servers')
  assert.deepEqual(JSON.parse(String(text)), { git: shown })
  const nested = hideSecrets(JSON.stringify({ inner: JSON.stringify({ env: { A: 'x1y2' } }) }))
  assert.equal(String(nested).includes('x1y2'), false)
})

test('PL-12 JSON text that cannot be read, is too long or too deep is hidden whole; without a secret it stays', () => {
  assert.equal(hideSecrets('{"env": {"A": "x1y2"', 'mcp_servers'), MASK)
  assert.equal(hideSecrets(`["${'x'.repeat(300_000)}"]`), MASK)
  let deep = '{"env":{"A":"x1y2"}}'
  for (let level = 0; level < 8; level++) deep = JSON.stringify([deep])
  assert.equal(String(hideSecrets(deep)).includes('x1y2'), false)
  const plain = '{ "git": { "command": "npx", "args": ["-y"] } }'
  assert.equal(hideSecrets(plain, 'mcp_servers'), plain)
})

test('PL-12 secrets in a command are hidden after flags and names, and the rest of it is shown', () => {
  for (const [command, shown] of [
    ['run --token x1y2 --port 80', `run --token ${MASK} --port 80`],
    ["sh -c 'run --password=x1y2 && ls'", `sh -c 'run --password=${MASK} && ls'`],
    ['API_KEY=x1y2 GITHUB_TOKEN="x1 y2" run', `API_KEY=${MASK} GITHUB_TOKEN=${MASK} run`],
    ['curl -H "Authorization: Bearer x1y2" a.test', `curl -H ${MASK} a.test`],
    ['curl -u me:x1y2 a.test?n=1&api_key=x1y2&m=2', `curl -u ${MASK} a.test?n=1&api_key=${MASK}&m=2`],
    ['API_KEY=x1,y2?z a.test', `API_KEY=${MASK} a.test`],
    ['say Bearer x1y2x1y2', `say Bearer ${MASK}`],
  ] as const)
    assert.equal(hideSecrets(command, 'cmd'), shown)
  for (const command of ['cat', 'run --token $GITHUB_TOKEN', 'run --max-tokens 4096', '[ -f a ] && cat a', 'git@a:b'])
    assert.equal(hideSecrets(command, 'cmd'), command)
  assert.deepEqual(
    [holdsHidden('run --token [hidden]'), holdsHidden({ a: ['x'] }), holdsHidden(undefined)],
    [...[true, false, false]],
  )
})
