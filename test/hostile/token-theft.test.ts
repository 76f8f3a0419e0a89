/** A program listens where the platform should be and waits for a command to send it the admin token. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { bootId, startTimeOf } from '../../src/process/identity.ts'
import { BIN, MOLECULE, runCommand } from '../harness/command.ts'
import { linuxOnly } from '../harness/live-processes.ts'
import { replyText, startPlatformFor } from '../harness/platform.ts'
import { temporaryDir } from '../harness/process-harness.ts'

const SECRET = 'the-admin-token-of-this-data-folder'

/** A server that keeps what it is told; undefined where the address does not exist. */
async function imposter(t: TestContext, { port = 0, host = '127.0.0.1' } = {}) {
  const heard: (string | undefined)[] = []
  const server = createServer((request, response) => {
    heard.push(request.headers.authorization)
    response.setHeader('Content-Type', 'application/json').end('{"workspaces":[]}')
  })
  server.listen(port, host)
  const failed = once(server, 'error').then(([error]) => error as NodeJS.ErrnoException)
  const problem = await Promise.race([once(server, 'listening').then(() => undefined), failed])
  if (problem) return undefined
  t.after(() => server.close())
  return { heard, port: (server.address() as AddressInfo).port }
}

function folderWithToken(t: TestContext): string {
  const dataDir = temporaryDir(t)
  writeFileSync(join(dataDir, 'admin-token'), `${SECRET}\n`, { mode: 0o600 })
  return dataDir
}

/** Runs the commands that read the token of the data folder; what they print. */
async function runCommands(env: Readonly<Record<string, string>>): Promise<string> {
  const molecule = await runCommand(['workspace', 'list'], { env })
  const a2a = await runCommand(['peers'], { env, program: 'a2a' })
  assert.deepEqual([molecule.code, a2a.code], [1, 1], molecule.out + a2a.out)
  assert.match(molecule.err, /^error: .*MOLECULE_ADMIN_TOKEN/)
  assert.match(a2a.err, /^\[A2A_ERROR\] .*MOLECULE_ADMIN_TOKEN/)
  return molecule.err + a2a.err
}

test('RE-9 no platform runs: a listener on loopback does not get the admin token', async (t) => {
  const thief = await imposter(t)
  assert.ok(thief)
  const env = { MOLECULE_HOME: folderWithToken(t), MOLECULE_API_URL: `http://localhost:${thief.port}` }
  assert.match(await runCommands(env), /does not run; start it with ".*molecule up"/)
  assert.deepEqual(thief.heard, [])
})

test('RE-9 a platform was killed: whoever takes its port does not get the admin token', async (t) => {
  const platform = await startPlatformFor(t)
  await platform.stop('SIGKILL')
  const thief = await imposter(t, { port: Number(new URL(platform.url).port) })
  assert.ok(thief)
  await runCommands({ MOLECULE_HOME: platform.dataDir })
  await runCommands({ MOLECULE_HOME: platform.dataDir, MOLECULE_ADMIN_TOKEN: platform.token })
  assert.deepEqual(thief.heard, [])
})

test('RE-9 a recorded process that lives but does not listen does not vouch for the listener', linuxOnly, async (t) => {
  const thief = await imposter(t)
  assert.ok(thief)
  const idle = spawn('sleep', ['600'])
  t.after(() => idle.kill('SIGKILL'))
  await once(idle, 'spawn')
  const [dataDir, pid] = [folderWithToken(t), idle.pid as number]
  const record = { pid, url: `http://127.0.0.1:${thief.port}`, startedAt: '', bootId: await bootId() }
  const announce = (startTime: string) =>
    writeFileSync(join(dataDir, 'platform.json'), JSON.stringify({ ...record, startTime }))
  announce((await startTimeOf(pid)) ?? '')
  assert.match(await runCommands({ MOLECULE_HOME: dataDir }), /token was not sent.*another process listens/)
  announce('1')
  assert.match(await runCommands({ MOLECULE_HOME: dataDir }), /does not run/)
  assert.deepEqual(thief.heard, [])
})

test('RE-9 "localhost" leads to the platform, not to a listener on another loopback address', linuxOnly, async (t) => {
  const platform = await startPlatformFor(t)
  const { port } = new URL(platform.url)
  const thief = await imposter(t, { port: Number(port), host: '::1' })
  if (thief === undefined) return t.skip('no ::1 on this machine')
  for (const name of ['localhost', '[::1]']) {
    const env = { MOLECULE_HOME: platform.dataDir, MOLECULE_API_URL: `http://${name}:${port}` }
    assert.equal((await runCommand(['workspace', 'list'], { env })).code, 0)
  }
  assert.deepEqual(thief.heard, [])
})

test('RE-9 RT-12 a process of a workspace never uses the admin token', async (t) => {
  const platform = await startPlatformFor(t)
  const home = `MOLECULE_HOME='${platform.dataDir}'`
  const line = [
    `unset MOLECULE_WORKSPACE_TOKEN`,
    `${home} '${MOLECULE}' workspace list 2>&1; echo $?`,
    `${home} MOLECULE_ADMIN_TOKEN=${platform.token} '${BIN}/a2a' peers 2>&1; echo $?`,
  ].join('\n')
  for (const pass_meta of ['true', 'false']) {
    const id = await platform.exec(line, { runtime_config: { pass_meta } })
    const refusal = 'this process works for a workspace and has no MOLECULE_WORKSPACE_TOKEN'
    const printed = replyText(await platform.send(id, '')) ?? ''
    assert.match(printed, new RegExp(`^error: ${refusal}.*\n1\n\\[A2A_ERROR\\] ${refusal}.*\n1\n$`))
  }
})
