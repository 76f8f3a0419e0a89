/** A machine without file handles, and a service manager that stops agents and platform at once: no attempt is counted. */

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { readLines } from '../harness/bridge.ts'
import {
  getTask,
  type PlatformUnderTest,
  reasonText,
  replyText,
  sendWithoutWaiting,
  startPlatform,
  startPlatformFor,
  waitForFinalTask,
} from '../harness/platform.ts'
import { temporaryDir } from '../harness/process-harness.ts'
import { waitUntil } from '../harness/wait.ts'

/** One attempt only: a turn that is counted makes a dead letter. */
const ONE_ATTEMPT = { max_attempts: 1 }

function setHandleLimit({ pid }: PlatformUnderTest, limit: string): void {
  execFileSync('sh', ['-c', `prlimit --pid ${pid} --nofile=${limit}:`])
}

test('RE-3 a turn that cannot start for lack of file handles waits and costs no attempt', async (t) => {
  if (process.platform !== 'linux') return t.skip('prlimit is a program of Linux')
  const platform = await startPlatformFor(t)
  const id = await platform.exec('cat', ONE_ATTEMPT)
  assert.equal(replyText(await platform.send(id, 'before')), 'before')
  const before = /Max open files\s+(\d+)/.exec(
    execFileSync('cat', [`/proc/${platform.pid}/limits`], { encoding: 'utf8' }),
  )
  // A process needs six handles for its pipes.
  setHandleLimit(platform, String(readdirSync(`/proc/${platform.pid}/fd`).length + 3))
  const taskId = await sendWithoutWaiting(platform, id, 'hello')
  let task = await getTask(platform, id, taskId)
  await waitUntil(
    async () => {
      task = await getTask(platform, id, taskId)
      return reasonText(task) !== ''
    },
    () => JSON.stringify(task),
  )
  assert.match(reasonText(task), /^waiting: the machine has no free file handles or processes \(EMFILE\)/)
  setHandleLimit(platform, String(before?.[1]))
  assert.equal(replyText(await waitForFinalTask(platform, id, taskId)), 'hello')
})

test('RE-3 an agent that gets the same signal as the platform costs no attempt; its message runs again', async (t) => {
  const dataDir = temporaryDir(t)
  const runs = join(temporaryDir(t), 'runs')
  const first = await startPlatform({ dataDir })
  t.after(() => first.dispose())
  const id = await first.exec(`echo $$ >> ${runs}; [ $(wc -l < ${runs}) = 1 ] && exec sleep 1000; cat`, ONE_ATTEMPT)
  const taskId = await sendWithoutWaiting(first, id, 'hello')
  await waitUntil(() => readLines(runs).length === 1)
  const stopped = first.stop('SIGTERM')
  await waitUntil(() => /Stopping/.test(first.output()))
  process.kill(Number(readLines(runs)[0]), 'SIGTERM')
  assert.equal(await stopped, 0)
  const second = await startPlatform({ dataDir })
  t.after(() => second.dispose())
  assert.equal(replyText(await waitForFinalTask(second, id, taskId)), 'hello')
  assert.equal(readLines(runs).length, 2)
})
