/** `molecule doctor` with real agent processes and with real faults. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type FakeAgentName, writeFakeAgent } from '../fakes/agents/fake-program.ts'
import { BIN, runCommand } from '../harness/command.ts'
import { isAlive, linuxOnly } from '../harness/live-processes.ts'
import { startPlatform } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

interface Finding {
  readonly area: string
  readonly name: string
  readonly verdict: string
  readonly text: string
  readonly remedy?: string
}

/** A machine with its own home folder and PATH. */
function machine(t: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), 'molecule-doctor-test-'))
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  for (const name of ['bin', 'home', 'fake']) mkdirSync(join(dir, name))
  const data = join(dir, 'data')
  mkdirSync(data, { mode: 0o700 })
  const env = {
    PATH: `${join(dir, 'bin')}:${dirname(process.execPath)}:/usr/bin:/bin`,
    HOME: join(dir, 'home'),
    MOLECULE_HOME: data,
    // No process listens on port 1.
    MOLECULE_API_URL: 'http://127.0.0.1:1',
    MOLECULE_PORT: '0',
    ...Object.fromEntries(KEYS.map((name) => [name, ''])),
  }
  const program = (name: string, script: string) => {
    writeFileSync(join(dir, 'bin', name), `#!/bin/sh\n${script}\n`)
    chmodSync(join(dir, 'bin', name), 0o755)
  }
  const agent = (name: FakeAgentName, scenario: string) =>
    writeFakeAgent(join(dir, 'bin', name), { agent: name, scenario, dir: join(dir, 'fake') })
  const doctor = async (args: readonly string[] = [], more: Record<string, string> = {}) => {
    const { code, out, err } = await runCommand(['doctor', '-o', 'json', ...args], { env: { ...env, ...more } })
    assert.doesNotMatch(err, /^error/)
    const findings = JSON.parse(out) as Finding[]
    const of = (area: string, name?: string) =>
      findings.find((one) => one.area === area && (name === undefined || one.name === name)) as Finding
    return { code, findings, of }
  }
  return { dir, data, env, program, agent, doctor }
}

const KEYS = [
  ...['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN', 'CLAUDE_CODE_OAUTH_TOKEN', 'CLAUDE_CONFIG_DIR', 'CODEX_HOME'],
  ...['OPENAI_API_KEY', 'CODEX_API_KEY', 'GEMINI_API_KEY', 'GOOGLE_API_KEY', 'OPENROUTER_API_KEY', 'XDG_DATA_HOME'],
  ...['CLAUDE_AUTH_TOKEN', 'CLAUDE_CODE_USE_BEDROCK', 'CLAUDE_CODE_USE_VERTEX', 'CLAUDE_CODE_USE_FOUNDRY'],
  ...['GEMINI_CLI_HOME', 'GOOGLE_GENAI_USE_VERTEXAI', 'OPENCODE_API_KEY', 'HERMES_HOME', 'OPENCLAW_STATE_DIR'],
]

test('CL-3 doctor shows for each agent whether it is installed, its version, its protocol and what to do', async (t) => {
  const { agent, program, doctor } = machine(t)
  agent('claude', 'echo')
  program('gemini', 'echo broken >&2; exit 7')
  const { code, of } = await doctor()
  const found = of('agents', 'claude')
  assert.deepEqual([found.verdict, found.text], ['note', '2.1.327: speaks as expected; no log-in found'])
  assert.match(found.remedy ?? '', /log in/)
  assert.deepEqual([of('agents', 'codex').verdict, of('agents', 'codex').text], ['note', 'not installed'])
  assert.match(of('agents', 'codex').remedy ?? '', /npm install -g @openai\/codex/)
  assert.equal(of('agents', 'gemini').verdict, 'broken')
  assert.match(of('agents', 'gemini').text, /exit code 7.*broken/s)
  assert.equal(code, 1)
})

test('CL-3 doctor names what a newer agent lacks, the tested version and the consequence', async (t) => {
  const { agent, doctor, dir } = machine(t)
  agent('codex', 'renamed')
  agent('gemini', 'without-output-format')
  agent('openclaw', 'without-message-file')
  mkdirSync(join(dir, 'home', '.codex'))
  writeFileSync(join(dir, 'home', '.codex', 'auth.json'), '{}')
  const { code, of } = await doctor()
  assert.deepEqual(of('agents', 'codex'), {
    area: 'agents',
    name: 'codex',
    verdict: 'note',
    text: '0.170.0 (tested: 0.166.0): event turn/completed missing, running one-shot without streaming; its own log-in pays',
    remedy: 'npm install -g @openai/codex@0.166.0',
  })
  assert.match(of('agents', 'gemini').text, /^0\.70\.0 \(tested: 0\.61\.0\): speaks as expected;/)
  const { verdict, text, remedy } = of('agents', 'openclaw')
  assert.deepEqual([verdict, text], ['broken', '2026.9.6: option --message-file missing, its turns fail'])
  assert.equal(remedy, 'npm install -g openclaw@2026.9.6')
  assert.equal(code, 1)
})

test('RT-13 doctor names the payer: the log-in of the agent or a variable, never its value', async (t) => {
  const { agent, doctor, dir } = machine(t)
  agent('claude', 'echo')
  agent('gemini', 'echo')
  agent('opencode', 'echo')
  for (const name of ['.claude', '.gemini']) mkdirSync(join(dir, 'home', name))
  writeFileSync(join(dir, 'home', '.claude', '.credentials.json'), '{}')
  const keys = { ANTHROPIC_API_KEY: 'hush-1', GEMINI_API_KEY: 'hush-2', OPENAI_API_KEY: 'hush-3' }
  const { of, findings } = await doctor([], keys)
  assert.match(of('agents', 'claude').text, /; ANTHROPIC_API_KEY pays$/)
  assert.match(of('agents', 'gemini').text, /; GEMINI_API_KEY pays$/)
  assert.match(of('agents', 'opencode').text, /; ANTHROPIC_API_KEY or OPENAI_API_KEY or GEMINI_API_KEY pays$/)
  assert.doesNotMatch(JSON.stringify(findings), /hush/)
  writeFileSync(
    join(dir, 'home', '.gemini', 'settings.json'),
    '{"security":{"auth":{"selectedType":"oauth-personal"}}}',
  )
  writeFileSync(join(dir, 'home', '.gemini', 'oauth_creds.json'), '{}')
  const { of: now } = await doctor([], { GEMINI_API_KEY: 'hush-2' })
  assert.deepEqual([now('agents', 'claude').verdict, now('agents', 'gemini').verdict], ['ok', 'ok'])
  assert.match(now('agents', 'claude').text, /; its own log-in pays$/)
  assert.match(now('agents', 'gemini').text, /; its own log-in pays$/)
})

test('CL-3 --probe runs one turn to check whether the provider accepts the log-in', async (t) => {
  const { agent, doctor } = machine(t)
  agent('claude', 'echo')
  const well = await doctor(['--probe'])
  assert.deepEqual([well.code, well.of('agents', 'claude').verdict], [0, 'ok'], well.of('agents', 'claude').text)
  assert.match(well.of('agents', 'claude').text, /speaks as expected; it answers; its own settings say who pays$/)
  agent('claude', 'error-401')
  const out = await doctor(['--probe'], { ANTHROPIC_API_KEY: 'stale' })
  assert.deepEqual([out.code, out.of('agents', 'claude').verdict], [0, 'note'])
  assert.match(out.of('agents', 'claude').text, /refuses its credentials$/)
  agent('claude', 'complain')
  const changed = await doctor(['--probe'])
  assert.deepEqual([changed.code, changed.of('agents', 'claude').verdict], [1, 'broken'])
  assert.match(changed.of('agents', 'claude').text, /the turn failed/)
})

test('CL-3 an interrupted doctor ends and kills every agent that it started', linuxOnly, async (t) => {
  const { program, env, dir } = machine(t)
  const pidFile = join(dir, 'pid')
  // An agent that prints its version, then never answers and ignores the end of its input.
  program('gemini', `[ "$1" = --version ] && echo 0.61.0 && exit; echo $$ > '${pidFile}'; exec sleep 300`)
  const child = spawn(join(BIN, 'molecule'), ['doctor'], { env, stdio: 'ignore' })
  const ended = once(child, 'exit')
  await waitUntil(() => existsSync(pidFile) && readFileSync(pidFile, 'utf8').endsWith('\n'), 'it looks')
  child.kill('SIGINT')
  assert.deepEqual(await ended, [1, null])
  assert.equal(isAlive(Number(readFileSync(pidFile, 'utf8'))), false)
})

test('CL-3 a machine without a platform exits with 0 and names the first step', async (t) => {
  const { doctor } = machine(t)
  const { code, of } = await doctor()
  assert.equal(code, 0)
  assert.equal(of('platform', 'http://127.0.0.1:1').remedy, 'start it: "molecule up"')
  assert.deepEqual([of('store').verdict, of('tokens').verdict], ['note', 'note'])
})

test('CL-3 broken permissions, token, store, port and settings are reported with exit code 1', async (t) => {
  const { data, doctor } = machine(t)
  chmodSync(data, 0o755)
  writeFileSync(join(data, 'admin-token'), 'secret-of-the-test\n')
  chmodSync(join(data, 'admin-token'), 0o644)
  writeFileSync(join(data, 'molecule.db'), 'this is no database, and longer than the header of one '.repeat(20))
  const holder = createServer()
  await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve))
  t.after(() => holder.close())
  const { port } = holder.address() as { port: number }
  const { code, findings, of } = await doctor([], { MOLECULE_PORT: String(port) })
  assert.equal(code, 1)
  assert.deepEqual([of('data', 'folder').verdict, of('data', 'folder').remedy], ['broken', `chmod 700 ${data}`])
  assert.match(of('tokens').text, /other users of this machine can read/)
  assert.match(of('store').text, /cannot be read: .*not a database/)
  assert.match(of('ports').text, new RegExp(`taken by process ${process.pid} `))
  assert.match(of('data', 'sizes').text, /molecule\.db 1\.1 KB/)
  assert.doesNotMatch(JSON.stringify(findings), /secret-of-the-test/)
  writeFileSync(join(data, 'molecule.yaml'), 'port: eighty\n')
  const { of: now } = await doctor([], { MOLECULE_PORT: '' })
  assert.match(now('platform', 'settings').text, /cannot be "eighty"/)
})

test('CL-3 doctor shows the running platform and its failed workspaces as a table', async (t) => {
  const { env } = machine(t)
  const platform = await startPlatform()
  t.after(() => platform.dispose())
  await platform.exec('cat', { name: 'fine' })
  await platform.request('POST', '/workspaces', { name: 'sick', runtime: 'claude-code' })
  const own = { MOLECULE_HOME: platform.dataDir, MOLECULE_API_URL: '', MOLECULE_PORT: new URL(platform.url).port }
  const { code, out } = await runCommand(['doctor'], { env: { ...env, ...own } })
  assert.equal(code, 1)
  assert.match(out, /^ok +platform: http:\S+ +it runs and is ready, version /m)
  assert.match(
    out,
    /^BROKEN +workspaces: sick +.*claude is not found.* -> correct it, then ".*molecule workspace restart sick"/m,
  )
  assert.match(out, /^ok +store: embedded +2 workspaces, 0 tasks$/m)
  assert.match(out, /^ok +ports: \S+ +held by this platform/m)
  assert.doesNotMatch(out, new RegExp(platform.token))
})

test('CL-8 CL-3 doctor asks the running platform: its PATH and its log-ins count, not those of this shell', async (t) => {
  const { env, program, agent, doctor, dir } = machine(t)
  agent('claude', 'echo')
  agent('codex', 'echo')
  const alone = await doctor()
  assert.match(
    alone.of('agents', 'found by').text,
    /^this shell: its PATH and its log-ins count, because no platform runs$/,
  )
  const platform = await startPlatform({
    dataDir: env.MOLECULE_HOME,
    env: { ...env, MOLECULE_API_URL: '', CLAUDE_CODE_USE_VERTEX: '1' },
  })
  try {
    // In this shell there is another program beside them, a key, and another claude that is broken.
    const shell = join(dir, 'shell')
    mkdirSync(shell)
    const here = { PATH: `${shell}:${env.PATH}`, MOLECULE_API_URL: platform.url, CODEX_API_KEY: 'sk-mine' }
    for (const name of ['claude', 'gemini']) {
      program(name === 'gemini' ? '../shell/gemini' : '../shell/claude', 'echo broken >&2; exit 9')
    }
    const { of, findings } = await doctor([], here)
    assert.match(of('agents', 'found by').text, /^the running platform at http/)
    assert.match(of('agents', 'claude').text, /speaks as expected; .*Vertex.* pays$/i)
    assert.equal(of('agents', 'claude').verdict, 'ok')
    const codex = of('agents', 'codex')
    assert.match(codex.text, /the platform finds no log-in, while this shell has one \(.*CODEX_API_KEY.*\)$/)
    assert.match(codex.remedy ?? '', /^start the platform from this shell; or run "codex login"/)
    assert.match(of('agents', 'gemini').text, /^not on the PATH of the platform, while this shell finds \/.*\/gemini$/)
    assert.doesNotMatch(JSON.stringify(findings), /sk-mine/)
    const made = await runCommand(['init', '--yes', '-o', 'json'], { env: { ...env, ...here } })
    assert.equal(JSON.parse(made.out).runtime, 'claude-code', made.err)
  } finally {
    await platform.dispose()
  }
})
