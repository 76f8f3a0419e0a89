/** `molecule agent send` and `molecule task`: files in and out, the reason of a wait, and a task that is found again. */
import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { createFakeProgram } from '../fakes/agents/fake-program.ts'
import { openTerminal, runCommand, startCommand } from '../harness/command.ts'
import {
  getTask,
  getWorkspace,
  type PlatformUnderTest,
  replyText,
  sendWithoutWaiting,
  startPlatform,
  waitForFinalTask,
} from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

const { path: claude } = createFakeProgram('claude')
const CTRL_C = '\u0003'

describe('molecule agent send and molecule task', () => {
  let platform: PlatformUnderTest
  let folder: string
  before(async () => {
    platform = await startPlatform()
    folder = await mkdtemp(join(tmpdir(), 'molecule-send-'))
    const runtime_config = { bin: claude }
    await platform.request('POST', '/workspaces', { name: 'filer', runtime: 'claude-code', runtime_config })
  })
  after(async () => {
    await platform.dispose()
    await rm(folder, { recursive: true })
  })

  const molecule = (...args: string[]) => runCommand(args, { env: { MOLECULE_HOME: platform.dataDir }, cwd: folder })
  const succeed = async (...args: string[]) => {
    const { code, out, err } = await molecule(...args)
    assert.equal(code, 0, `${args.join(' ')}: ${err}`)
    return { out, err }
  }
  const saved = (name: string) => readFile(join(folder, 'molecule-files', name), 'utf8')

  test('CL-1 send --file attaches files, and one that cannot be sent is named before anything is sent', async () => {
    const id = await platform.exec('cat', { name: 'reader', runtime_config: { format: 'json' } })
    await writeFile(join(folder, 'a b.txt'), 'content of a')
    await writeFile(join(folder, 'b.png'), Buffer.from([1, 2, 3]))
    const { out } = await succeed(
      'agent',
      'send',
      'reader',
      'look',
      '--file',
      'a b.txt',
      '--file',
      join(folder, 'b.png'),
    )
    const files = JSON.parse(out).parts.slice(1)
    assert.deepEqual(
      files.map((part: { filename: string; mime_type: string }) => [part.filename, part.mime_type]),
      [
        ['a b.txt', 'text/plain; charset=utf-8'],
        ['b.png', 'image/png'],
      ],
    )
    await writeFile(join(folder, 'huge.bin'), Buffer.alloc(7_000_000))
    for (const [path, expected, problem] of [
      ['gone.txt', 2, /^error: the file gone\.txt does not exist\n$/],
      ['.', 2, /^error: \. is not a file; attach single files\n$/],
      [
        'huge.bin',
        1,
        /^error: huge\.bin \(7\.0 MB\) is too large: the files of a message may have 5\.9 MB together\n$/,
      ],
    ] as const) {
      const { code, err } = await molecule('agent', 'send', 'reader', 'look', '--file', path)
      assert.equal(code, expected)
      assert.match(err, problem)
    }
    assert.equal((await platform.rpc(id, 'ListTasks', {})).body.result.totalSize, 1)
  })

  test('CL-1 the files of an answer are saved and named, and no file is ever overwritten', async () => {
    const first = await succeed('agent', 'send', 'filer', '!outbox report.txt')
    assert.match(first.err, /^saved molecule-files\/report\.txt \(\d+ B\)$/m)
    const content = await saved('report.txt')
    const again = await succeed('agent', 'send', 'filer', '!outbox report.txt')
    assert.match(again.err, /^already saved as molecule-files\/report\.txt \(\d+ B\)$/m)
    await writeFile(join(folder, 'molecule-files', 'report.txt'), 'mine')
    const third = await succeed('agent', 'send', 'filer', '!outbox report.txt')
    assert.match(third.err, /^saved molecule-files\/report-2\.txt \(\d+ B\)$/m)
    assert.deepEqual([await saved('report.txt'), await saved('report-2.txt')], ['mine', content])
    const elsewhere = await succeed('agent', 'send', 'filer', '!outbox report.txt', '--save', 'other/place')
    assert.match(elsewhere.err, /^saved other\/place\/report\.txt /m)
    const unsaved = await succeed('agent', 'send', 'filer', '!outbox report.txt', '--no-save')
    assert.match(unsaved.err, /^file report\.txt, not saved$/m)
    const json = await succeed('agent', 'send', 'filer', '!outbox report.txt', '-o', 'json')
    assert.doesNotMatch(json.err, /saved/)
    assert.deepEqual(await readdir(join(folder, 'molecule-files')), ['report-2.txt', 'report.txt'])
    const { code, out, err } = await molecule('agent', 'send', 'filer', '!outbox report.txt', '--save', '/dev/null/x')
    assert.equal(code, 1)
    assert.notEqual(out, '')
    const advice =
      /could not be saved in \/dev\/null\/x \(ENOTDIR\); ".*molecule task show (\w+) --save FOLDER" saves it/
    const taskId = advice.exec(err)?.[1] ?? err
    const shown = await succeed('task', 'show', taskId, '--save', 'later')
    assert.match(shown.out, /^files +report\.txt \(\d+ B\)$/m)
    assert.match(shown.err, /^saved later\/report\.txt /m)
  })

  test('CL-2 CL-7 send shows why a message waits, and Ctrl-C says how to find and cancel its task', async (t) => {
    const id = await platform.exec('sleep 60', { name: 'busy' })
    await sendWithoutWaiting(platform, id, 'first')
    await waitUntil(async () => (await getWorkspace(platform, id)).running === 1, 'the first message runs')
    const typing = openTerminal(t, ['agent', 'send', 'busy', 'second'], { MOLECULE_HOME: platform.dataDir })
    await typing.waitForText(/the task is \w+; ".*molecule task show \w+" shows it/)
    await typing.waitForText(/busy: waiting for a free slot: 1 of 1 in use, 1 waiting \d+ s/)
    typing.type(CTRL_C)
    assert.equal(await typing.ended(), 130)
    assert.match(typing.shown(), /no longer waiting; busy still has the message:/)
    const taskId = /molecule task cancel (\w+)/.exec(typing.shown())?.[1] ?? ''
    const { out } = await succeed('task', 'show', taskId)
    assert.match(out, /^state +waiting for a free slot/m)
    assert.match(out, /^text +second$/m)
    assert.equal((await succeed('task', 'cancel', taskId)).out, `canceled ${taskId}\n`)
    assert.equal((await getTask(platform, id, taskId)).status.state, 'TASK_STATE_CANCELED')
    await platform.request('POST', `/workspaces/${id}/pause?now=true`)
    const piped = startCommand(t, ['agent', 'send', 'busy', 'third'], { env: { MOLECULE_HOME: platform.dataDir } })
    await piped.waitForErrors(/^waiting for busy\nthe task is .*\nbusy: waiting: the workspace is paused\n$/)
    const open = JSON.parse((await succeed('task', 'list', 'busy', '--state', 'submitted', '-o', 'json')).out)
    await succeed('task', 'cancel', ...open.map((task: { id: string }) => task.id))
    const { code, err } = await piped.ended()
    assert.equal(code, 1)
    assert.match(err, /paused\nerror: the task was cancelled; "/)
  })

  test('CL-2 RT-7 send shows the sentence of a failure that is tried again, without the words of the program', async (t) => {
    await platform.exec('echo own words >&2; exit 3', { name: 'flaky' })
    const sending = startCommand(t, ['agent', 'send', 'flaky', 'x'], { env: { MOLECULE_HOME: platform.dataDir } })
    await sending.waitForErrors(/\nflaky: attempt 2 of 4 in 5 s: .* ended with exit code 3 \(exit_3, err_\w+\)\n/)
  })

  test('CL-2 RE-1 send follows its task through a restart of the platform, and names it when it gives up', async (t) => {
    const dataDir = await mkdtemp(join(tmpdir(), 'molecule-send-'))
    const gate = join(dataDir, 'gate')
    let short = await startPlatform({ dataDir })
    const port = new URL(short.url).port
    const env = { MOLECULE_HOME: dataDir, MOLECULE_API_URL: short.url }
    try {
      const id = await short.exec(`until [ -e ${gate} ]; do sleep 0.1; done; cat`, { name: 'survivor' })
      const isRunning = () => waitUntil(async () => (await getWorkspace(short, id)).running === 1, 'the message runs')
      const patient = startCommand(t, ['agent', 'send', 'survivor', 'are you there'], { env })
      await isRunning()
      await short.stop('SIGKILL')
      await patient.waitForErrors(
        /\nthe task is (\w+); ".*task show \1" shows it\nwaiting up to 10 min for the platform; surv/,
      )
      short = await startPlatform({ dataDir, args: ['--port', port] })
      await writeFile(gate, '')
      const { code, out, err } = await patient.ended()
      assert.deepEqual([code, out], [0, 'are you there\n'], err)
      await rm(gate)
      const hasty = startCommand(t, ['agent', 'send', 'survivor', 'and now', '--reconnect', '100ms'], { env })
      await isRunning()
      await short.stop('SIGKILL')
      const gaveUp = await hasty.ended()
      assert.equal(gaveUp.code, 1)
      const named =
        /error: .*; survivor still has the message: ".*molecule task show (\w+)" shows its state and its answer\n$/
      const taskId = named.exec(gaveUp.err)?.[1] ?? ''
      short = await startPlatform({ dataDir, args: ['--port', port] })
      await writeFile(gate, '')
      assert.equal(replyText(await waitForFinalTask(short, id, taskId)), 'and now')
    } finally {
      await short.dispose()
      await rm(dataDir, { recursive: true, force: true })
    }
  })

  test('CL-2 RE-1 a message whose acceptance was never confirmed is sent again after the restart, or its id is named', async (t) => {
    const dataDir = await mkdtemp(join(tmpdir(), 'molecule-send-'))
    let doomed = await startPlatform({ dataDir })
    const args = ['--port', new URL(doomed.url).port]
    const send = (...more: string[]) =>
      startCommand(t, ['agent', 'send', 'echo', 'hello', ...more], {
        env: { MOLECULE_HOME: dataDir, MOLECULE_API_URL: doomed.url },
      })
    try {
      await doomed.exec('cat', { name: 'echo' })
      await doomed.stop()
      // It stores the message and ends before it answers.
      const env = { MOLECULE_CRASH_AT: 'admitted' }
      doomed = await startPlatform({ dataDir, args, env })
      const patient = send()
      await patient.waitForErrors(/\nwaiting up to 10 min for the platform; then the message is sent again\n/)
      doomed = await startPlatform({ dataDir, args })
      const { code, out, err } = await patient.ended()
      assert.deepEqual([code, out], [0, 'hello\n'], err)
      await doomed.stop()
      doomed = await startPlatform({ dataDir, args, env })
      const gaveUp = await send('--reconnect', '100ms').ended()
      assert.equal(gaveUp.code, 1)
      const named = /error: .*; echo may have the message: ".*molecule task show ([\w-]+)" shows it then\n$/
      const messageId = named.exec(gaveUp.err)?.[1] ?? ''
      doomed = await startPlatform({ dataDir, args })
      const found = await runCommand(['task', 'show', messageId], { env: { MOLECULE_HOME: dataDir } })
      assert.match(found.out, /hello/, gaveUp.err + found.err)
    } finally {
      await doomed.dispose()
      await rm(dataDir, { recursive: true, force: true })
    }
  })

  test('CL-7 task list shows the last tasks of one workspace or of all; show and cancel take every id', async () => {
    const id = await platform.exec('cat', { name: 'listed' })
    await platform.exec('cat', { name: 'unlisted' })
    const done = (await succeed('agent', 'send', 'listed', 'one\ntwo', '-o', 'json')).out
    const { id: taskId, contextId } = JSON.parse(done)
    await succeed('agent', 'send', 'unlisted', 'other')
    const table = (await succeed('task', 'list', 'listed')).out
    assert.match(
      table,
      new RegExp(`^ID +WORKSPACE +STATE +CHANGED +TEXT\\n${taskId} +listed +completed +.* ago +one two\\n$`),
    )
    const rows = JSON.parse((await succeed('task', 'list', '-o', 'json')).out)
    const row = rows.find((one: { id: string }) => one.id === taskId)
    const { changed_at: at, ...facts } = row
    assert.ok(!Number.isNaN(Date.parse(at)))
    const expected = { id: taskId, workspace_id: id, workspace: 'listed', context_id: contextId, state: 'completed' }
    assert.deepEqual(facts, { ...expected, text: 'one\ntwo' })
    assert.equal(rows[0].workspace, 'unlisted')
    assert.equal(JSON.parse((await succeed('task', 'list', '-n', '1', '-o', 'json')).out).length, 1)
    assert.equal((await succeed('task', 'list', 'listed', '--state', 'failed')).out, 'There are no such tasks.\n')
    await platform.send(await platform.exec('echo own words >&2; exit 3', { name: 'broken', max_attempts: 1 }), 'go')
    const failed = (await succeed('task', 'list', 'broken')).out
    const failedId = failed.split('\n')[1]?.split(' ', 1)[0] ?? ''
    assert.match((await succeed('task', 'show', failedId)).out, /state +failed: .*\n?.*own words/)
    assert.match(
      failed,
      /broken +failed: the agent's program ended with exit code 3 \(exit_3, err_\w+\) +\S+ s ago +go\n$/,
    )
    const story = JSON.parse((await succeed('explain', taskId, '-o', 'json')).out)
    const shown = (await succeed('task', 'show', story.sender_message_id)).out
    assert.match(shown, new RegExp(`^task +${taskId}\\nworkspace +listed \\(${id}\\)\\nstate +completed\\n`))
    assert.match(shown, /\n\none\ntwo\n$/)
    for (const [args, problem] of [
      [['show', 'nothing'], /there is no message or task nothing/],
      [['cancel', 'nothing'], /there is no message or task nothing/],
      [['cancel', taskId], /has ended already/],
      [['list', '--state', 'strange'], /there is no state "strange"; the states are submitted, working/],
      [['list', '-n', '0'], /-n takes a number from 1 to 100/],
    ] as const) {
      const { code, err } = await molecule('task', ...args)
      assert.equal(code, args[0] === 'list' ? 2 : 1, args.join(' '))
      assert.match(err, problem)
    }
  })
})
