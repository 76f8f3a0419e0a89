import assert from 'node:assert/strict'
import test from 'node:test'
import { withoutDatabasePassword } from './process-title.ts'

test('PL-12 the password of --database is hidden wherever the URL has it; other arguments stay', () => {
  const shown = (...argv: string[]) => withoutDatabasePassword(['up', ...argv, '--port', '1'])
  assert.deepEqual(shown('--database', 'postgres://ana:s3cret@db/m'), [
    ...['up', '--database', 'postgres://ana:***@db/m', '--port', '1'],
  ])
  assert.deepEqual(shown('--database=postgres://ana:s3cret@db/m')?.[1], '--database=postgres://ana:***@db/m')
  assert.deepEqual(
    shown('--database', 'postgres://db/m?user=ana&password=s3cret')?.[2],
    'postgres://db/m?user=ana&password=***',
  )
  assert.deepEqual(shown('--database', 'postgres://ana:s3cr#et@:db')?.[2], '***')
  assert.equal(shown('--database', 'postgres://ana@db/m'), undefined)
  assert.equal(shown('--data-dir', 'postgres://ana:s3cret@db/m'), undefined)
})
