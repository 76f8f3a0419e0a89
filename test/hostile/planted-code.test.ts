/** An agent, or another program of the same user, changes what the platform will run. The owner must see it. */
import assert from 'node:assert/strict'
import { appendFileSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { runCommand } from '../harness/command.ts'
import { type PlatformUnderTest, startPlatformFor } from '../harness/platform.ts'
import { temporaryDir } from '../harness/process-harness.ts'
import { waitUntil } from '../harness/wait.ts'

const EXAMPLE = join(import.meta.dirname, '..', '..', 'docs', 'backends', 'example-adapter')

const notesOf = async (platform: PlatformUnderTest, id: string, type: string): Promise<string[]> =>
  (await platform.request('GET', `/workspaces/${id}/activity?type=${type}`)).body.activity.map(
    ({ text, by }: { text: string; by: string }) => `${by}: ${text}`,
  )

async function doctorOn(dataDir: string): Promise<string> {
  const { out } = await runCommand(['doctor', '-o', 'json'], { env: { MOLECULE_HOME: dataDir, PATH: '/usr/bin:/bin' } })
  const findings = JSON.parse(out) as { area: string; name: string; text: string }[]
  return findings
    .filter(({ area }) => area === 'adapters')
    .map(({ name, text }) => `${name}: ${text}`)
    .join('\n')
}

test('RE-9 RT-10 an adapter that is new, changed or gone is named with its hash in log, activity and doctor', async (t) => {
  const dataDir = temporaryDir(t)
  const adapter = join(dataDir, 'adapters', 'parrot')
  cpSync(EXAMPLE, adapter, { recursive: true })
  assert.match(await doctorOn(dataDir), /^parrot: new since the last start of the platform: sha256:[0-9a-f]{64}$/)

  const first = await startPlatformFor(t, { dataDir })
  const [hash] = /sha256:[0-9a-f]{64}/.exec(first.output()) ?? []
  assert.match(first.output(), /the adapter \\?"parrot\\?" is new since the last start/)
  assert.match(await doctorOn(dataDir), new RegExp(`^parrot: ${hash}, the same since 20`))
  const { body } = await first.request('POST', '/workspaces', { name: 'Polly', runtime: 'parrot' })
  const other = await first.exec('cat')
  await first.stop()

  const same = await startPlatformFor(t, { dataDir })
  assert.doesNotMatch(same.output(), /since the last start/)
  await same.stop()

  mkdirSync(join(adapter, 'lib'))
  writeFileSync(join(adapter, 'lib', 'planted.js'), 'export {}')
  assert.match(await doctorOn(dataDir), /^parrot: changed since the last start/)
  const second = await startPlatformFor(t, { dataDir })
  assert.match(second.output(), /the adapter \\?"parrot\\?" has changed since the last start/)
  const [note] = await notesOf(second, body.id, 'adapter_changed')
  assert.match(note ?? '', /^platform: the adapter "parrot" has changed since the last start \(sha256:[0-9a-f]{64}\)$/)
  assert.ok(!note?.includes(hash ?? ''))
  assert.deepEqual(await notesOf(second, other, 'adapter_changed'), [])
  await second.stop()

  rmSync(adapter, { recursive: true })
  const third = await startPlatformFor(t, { dataDir })
  assert.match(third.output(), /the adapter \\?"parrot\\?" is gone since the last start/)
})

test('RE-9 PL-3 a config.yaml that changes on the disk is shown in activity; a change through the API is not', async (t) => {
  const dataDir = temporaryDir(t)
  const first = await startPlatformFor(t, { dataDir })
  const id = await first.exec('cat', { runtime_config: { token_file: 'my-secret' } })
  const file = join(dataDir, 'workspaces', id.replace('ws_', 'ws-'), 'config.yaml')
  const notes = (platform: PlatformUnderTest) => notesOf(platform, id, 'config_changed')
  await first.request('PATCH', `/workspaces/${id}`, { role: 'through the API' })
  const text = readFileSync(file, 'utf8')
  await first.request('PUT', `/workspaces/${id}/files/config.yaml`, 'not yaml: [')
  await first.send(id, 'hello')
  assert.deepEqual(await notes(first), [])

  writeFileSync(file, `${text.replace('cmd: cat', 'cmd: echo stolen-secret')}model: other\n`)
  await first.send(id, 'hello')
  await first.send(id, 'again')
  const outside = 'platform: config.yaml was changed on the disk, not through the API'
  const expected = [`${outside}: changed model, runtime_config.cmd`]
  assert.deepEqual(await notes(first), expected)
  appendFileSync(file, '# only a comment\n')
  await first.send(id, 'hello')
  expected.push(`${outside}: no setting that the platform reads differs`)
  assert.deepEqual(await notes(first), expected)
  writeFileSync(file, readFileSync(file, 'utf8').replace('model: other', 'model: another'))
  await first.request('PATCH', `/workspaces/${id}`, { role: 'again through the API' })
  expected.push(`${outside}: changed model`)
  assert.deepEqual(await notes(first), expected)
  await first.stop()

  // During a downtime, and with an invalid file.
  writeFileSync(file, 'name: [\n')
  const second = await startPlatformFor(t, { dataDir })
  expected.push(`${outside}: it is invalid now`)
  await waitUntil(async () => (await notes(second)).length === expected.length, 'the note of the invalid file')
  assert.deepEqual(await notes(second), expected)
  await second.stop()
  const third = await startPlatformFor(t, { dataDir })
  rmSync(file)
  await third.send(id, 'hello')
  expected.push('platform: config.yaml was removed from the disk, not through the API: it has been restored')
  assert.deepEqual(await notes(third), expected)
})
