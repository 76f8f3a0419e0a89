/**
 * Agents that delegate without waiting: circles and depth are judged on the ancestry that the platform knows from the
 * sender's token, not on what the agent sends.
 */

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { readLines } from '../harness/bridge.ts'
import { type PlatformUnderTest, startPlatformFor } from '../harness/platform.ts'
import { temporaryDir } from '../harness/process-harness.ts'
import { waitUntil } from '../harness/wait.ts'

/** A forged send: the agent claims that its message has no path, and does not wait. */
const FORGE = `
const [id, text] = process.argv.slice(2)
const message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }], metadata: { molecule_path: [] } }
const params = { message, configuration: { returnImmediately: true } }
const answer = await fetch(process.env.MOLECULE_API_URL + '/workspaces/' + id + '/a2a', {
  method: 'POST',
  headers: { Authorization: 'Bearer ' + process.env.MOLECULE_WORKSPACE_TOKEN, 'Content-Type': 'application/json' },
  body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params }),
})
const { error } = await answer.json()
if (error) { console.error(error.message); process.exit(1) }
`

/** The results of delegations that come back later are messages too. */
const SKIP_RESULTS = 'case "$(cat)" in "The task "*) exit 0;; esac'

/** Workspaces that each run `command(n)`, note their run in `runs` and their error in `errors`. */
async function makeTeam(platform: PlatformUnderTest, folder: string, commands: readonly string[]) {
  const [runs, errors] = [join(folder, 'runs'), join(folder, 'errors')]
  writeFileSync(errors, '')
  const ids: string[] = []
  for (const [index, command] of commands.entries()) {
    const cmd = `${SKIP_RESULTS}; echo ${index} >> ${runs}; { ${command}; } 2>> ${errors}; echo "end ${index}" >> ${runs}`
    ids.push(await platform.exec(cmd, { name: `w${index}`, runtime_config: { pass_meta: 'true' } }))
  }
  const ended = () => readLines(runs).filter((line) => line.startsWith('end')).length
  const begun = () => readLines(runs).filter((line) => !line.startsWith('end'))
  return { ids, begun, ended, errors: () => readFileSync(errors, 'utf8') }
}

const withoutWaiting = (index: number) => `a2a delegate --async w${index} ping`

test('TW-5 two agents that delegate to each other without waiting are stopped at the first circle', async (t) => {
  const platform = await startPlatformFor(t)
  const team = await makeTeam(platform, temporaryDir(t), [withoutWaiting(1), withoutWaiting(0)])
  await platform.send(team.ids[0] ?? '', 'start')
  await waitUntil(
    () => team.ended() === 2,
    () => team.errors(),
  )
  assert.deepEqual(team.begun(), ['0', '1'])
  const [a, b] = team.ids
  assert.match(team.errors(), new RegExp(`the message goes in a circle: ${a} -> ${b} -> ${a}`))
  for (const id of team.ids) {
    await waitUntil(async () => {
      const { body } = await platform.request('GET', `/workspaces/${id}`)
      return body.queue_depth === 0 && body.running === 0
    })
  }
})

test('TW-5 a path that the agent claims does not count', async (t) => {
  const platform = await startPlatformFor(t)
  const folder = temporaryDir(t)
  const forge = join(folder, 'forge.mjs')
  writeFileSync(forge, FORGE)
  // The ids are known only after the workspaces exist.
  const send = (index: number) => `${process.execPath} ${forge} $(sed -n ${index + 1}p ${join(folder, 'ids')}) ping`
  const team = await makeTeam(platform, folder, [send(1), send(0)])
  writeFileSync(join(folder, 'ids'), `${team.ids.join('\n')}\n`)
  await platform.send(team.ids[0] ?? '', 'start')
  await waitUntil(
    () => team.ended() === 2,
    () => team.errors(),
  )
  assert.deepEqual(team.begun(), ['0', '1'])
  assert.match(team.errors(), /the message goes in a circle/)
})

test('TW-5 a chain of delegations without waiting ends at the fifth workspace, with the chain', async (t) => {
  const platform = await startPlatformFor(t)
  const team = await makeTeam(platform, temporaryDir(t), [1, 2, 3, 4, 5, 6].map(withoutWaiting))
  await platform.send(team.ids[0] ?? '', 'start')
  await waitUntil(
    () => team.ended() === 5,
    () => `${team.begun()} ${team.errors()}`,
  )
  assert.deepEqual(team.begun(), ['0', '1', '2', '3', '4'])
  assert.match(team.errors(), new RegExp(`already passed 5 relays: ${team.ids.join(' -> ')} \\(a delegation counts`))
})
