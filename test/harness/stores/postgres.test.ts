import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, readdirSync, statSync } from 'node:fs'
import { test } from 'node:test'
import { cleanEnvironment } from '../command.ts'
import { temporaryDir } from '../process-harness.ts'
import { findAccount, makeFolderFor } from './postgres-programs.ts'

const POSTGRES = new URL('./postgres.ts', import.meta.url).href
const START_AND_STOP = `
import { Client } from 'pg'
import { startPostgres } from ${JSON.stringify(POSTGRES)}
const postgres = await startPostgres()
const client = new Client({ connectionString: await postgres.url() })
await client.connect()
const { rows } = await client.query('select 1 + 1 as two')
await client.end()
await postgres.stop()
console.log(rows[0].two)
`

test('RE-12 PostgreSQL starts with an empty HOME and a TMPDIR that only its owner can enter', (t) => {
  const [HOME, TMPDIR] = [temporaryDir(t), temporaryDir(t)]
  for (const folder of [HOME, TMPDIR]) chmodSync(folder, 0o700)
  const args = ['--input-type=module', '-e', START_AND_STOP]
  const out = execFileSync(process.execPath, args, { env: cleanEnvironment({ HOME, TMPDIR }), encoding: 'utf8' })
  assert.equal(out, '2\n')
  const left = readdirSync(TMPDIR).filter((name) => name.startsWith('molecule-'))
  assert.deepEqual([left, readdirSync(HOME), statSync(TMPDIR).mode & 0o777], [[], [], 0o700])
})

const isRoot = { skip: process.getuid?.() !== 0 && 'only root needs another account for PostgreSQL' }

test('RE-12 where PostgreSQL can enter no temporary folder, one sentence says what to do', isRoot, async (t) => {
  const closed = temporaryDir(t)
  const before = process.env['TMPDIR']
  process.env['TMPDIR'] = closed
  t.after(() => {
    if (before === undefined) delete process.env['TMPDIR']
    else process.env['TMPDIR'] = before
  })
  const sentence = /its account \(uid \d+\) cannot enter .*: set TMPDIR to a folder that every account can enter/
  await assert.rejects(makeFolderFor(await findAccount(), []), sentence)
  assert.deepEqual(readdirSync(closed), [])
})
