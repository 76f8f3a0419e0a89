/** The command for voice notes, as a real process. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { createProcessHarness } from '../../../test/harness/process-harness.ts'
import { waitUntil } from '../../../test/harness/wait.ts'
import { createTranscriber } from './voice-command.ts'

const NOTE = { name: 'voice"; touch hacked; ".ogg', content: Buffer.from('hello') }
const never = new AbortController().signal

function hear(t: TestContext, command: string, timeoutMs?: number) {
  const { processes } = createProcessHarness(t)
  const environment = { PATH: process.env['PATH'] ?? '', MOLECULE_ADMIN_TOKEN: 'secret' }
  return createTranscriber({ command, processes, environment, ...(timeoutMs !== undefined && { timeoutMs }) })
}

test('GW-2 the voice command gets the path of the note as $1 and in its environment, and no secret; its folder goes', async (t) => {
  const transcribe = hear(
    t,
    'cat "$1"; echo; echo "$1"; echo "$MOLECULE_VOICE_FILE"; echo "${MOLECULE_ADMIN_TOKEN-none}"; ls',
  )
  const [words, path = '', variable, token, ...files] = (await transcribe(NOTE, never)).split('\n')
  assert.deepEqual([words, variable, token, files], ['hello', path, 'none', ['voice.ogg']])
  assert.match(path, /\/voice\.ogg$/)
  assert.equal(existsSync(path), false)
  const other = await hear(t, 'basename "$1"')({ ...NOTE, name: 'note.WAV' }, never)
  assert.equal(other, 'voice.WAV')
})

test('GW-2 a voice command that fails, prints nothing, prints without end, or takes too long, is an error that says so', async (t) => {
  const fails = (command: string, message: RegExp, timeoutMs?: number) =>
    assert.rejects(hear(t, command, timeoutMs)(NOTE, never), { message })
  await fails('echo no model >&2; exit 3', /ended with 3: no model$/)
  await fails('true', /printed no text$/)
  await fails('yes', /printed too much$/)
  await fails('sleep 300', /took too long$/, 50)
})

test('GW-2 at most four voice commands run at once, and a signal ends one that runs and one that waits', async (t) => {
  const { dir, processes } = createProcessHarness(t)
  const command = `echo x >> ${dir}/begun; cat "$1"; while [ ! -e ${dir}/go ]; do sleep 0.05; done`
  const environment = { PATH: process.env['PATH'] ?? '' }
  const transcribe = createTranscriber({ command, processes, environment })
  const stop = new AbortController()
  const runs = Array.from({ length: 6 }, (_, n) => transcribe(NOTE, n === 0 || n === 4 ? stop.signal : never))
  const begun = () => (existsSync(`${dir}/begun`) ? readFileSync(`${dir}/begun`, 'utf8').length / 2 : 0)
  await waitUntil(() => begun() === 4, 'four commands run')
  stop.abort()
  await assert.rejects(runs[0] as Promise<string>, { message: /was stopped$/ })
  await assert.rejects(runs[4] as Promise<string>, { message: /was stopped$/ })
  assert.equal(begun(), 4)
  writeFileSync(`${dir}/go`, '')
  assert.deepEqual(await Promise.all([1, 2, 3, 5].map((n) => runs[n])), Array(4).fill('hello'))
})
