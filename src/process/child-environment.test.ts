import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { bridgeEnvironment, childEnvironment, platformEnvironment } from './child-environment.ts'

test('RT-12 a child of a platform inherits no token, database URL and channel secret, in any case of letters', () => {
  const inherited = {
    PATH: '/bin',
    HOME: '/home/me',
    OPENAI_API_KEY: 'the agent needs it',
    MOLECULE_ADMIN_TOKEN: 's',
    MOLECULE_WORKSPACE_TOKEN: 's',
    MOLECULE_WORKSPACE_ID: 'that of another workspace',
    MOLECULE_NOT_YET_INVENTED: 's',
    DATABASE_URL: 's',
    Database_Url: 's',
    DISCORD_BOT_TOKEN: 's',
    TELEGRAM_BOT_TOKEN: 's',
    SLACK_APP_TOKEN: 's',
    MATRIX_ACCESS_TOKEN: 's',
    SOCKET_CHANNEL_TOKEN: 's',
    PGPASSWORD: 's',
    PGHOST: 'the store',
    pgservice: 's',
    UNSET: undefined,
  }
  const expected = { PATH: '/bin', HOME: '/home/me', OPENAI_API_KEY: 'the agent needs it' }
  assert.deepEqual(childEnvironment(platformEnvironment(inherited), {}), expected)
})

test('RT-12 a child of a bridge inherits all variables of its user, and none of ours', () => {
  const own = { PATH: '/bin', DATABASE_URL: 'postgres://mine', PGHOST: 'mine', DISCORD_BOT_TOKEN: 'mine' }
  const ours = { MOLECULE_WORKSPACE_TOKEN: 's', molecule_home: 's', UNSET: undefined }
  assert.deepEqual(childEnvironment(bridgeEnvironment({ ...own, ...ours }), {}), own)
})

test('additions win over inherited and over stripped variables', () => {
  const name = fc.oneof(
    fc.stringMatching(/^[A-Z][A-Z_]{0,8}$/),
    fc.constantFrom('MOLECULE_API_URL', 'DATABASE_URL', 'DISCORD_X', 'PATH'),
  )
  const variables = fc.dictionary(name, fc.string())
  fc.assert(
    fc.property(variables, variables, (inherited, additions) => {
      const environment = childEnvironment(platformEnvironment(inherited), additions)
      for (const [key, value] of Object.entries(additions)) assert.equal(environment[key], value)
      for (const [key, value] of Object.entries(environment)) {
        if (!Object.hasOwn(additions, key)) assert.equal(value, inherited[key])
        if (!Object.hasOwn(additions, key))
          assert.doesNotMatch(key, /^(MOLECULE_|DISCORD_|TELEGRAM_|MATRIX_|PG|DATABASE_URL$)/)
      }
    }),
  )
})
