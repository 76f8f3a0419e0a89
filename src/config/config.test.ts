import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import test, { type TestContext } from 'node:test'
import { temporaryDir } from '../../test/harness/process-harness.ts'
import { type ConfigSources, loadConfig, loadDataDir, PLATFORM_CONFIG_FILE } from './config.ts'

/** Creates a data folder with this `molecule.yaml`; returns sources that point to it. */
function withFile(t: TestContext, text: string, more: Partial<ConfigSources> = {}): ConfigSources & { path: string } {
  const dir = temporaryDir(t)
  const path = join(dir, PLATFORM_CONFIG_FILE)
  writeFileSync(path, text)
  return { flags: more.flags ?? {}, env: { MOLECULE_HOME: dir, ...more.env }, path }
}

test('PL-1 without any setting, every value is its default', async (t) => {
  const dataDir = join(temporaryDir(t), 'not-yet')
  const config = await loadConfig({ flags: {}, env: { MOLECULE_HOME: dataDir } })
  assert.deepEqual(config, {
    port: 8080,
    grpcPort: undefined,
    host: '127.0.0.1',
    publicUrls: [],
    trustedProxies: [],
    dataDir,
    logLevel: 'info',
    database: undefined,
    drainMs: 10_000,
    maxBlockMs: 120_000,
    allowOutbound: [],
    minFreeBytes: 500 * 1024 * 1024,
    usesCgroups: true,
    voiceCommand: undefined,
  })
  assert.ok(Object.isFrozen(config))
})

test('PL-1 the data folder is the flag, else MOLECULE_HOME, else ~/.molecule; always absolute', () => {
  assert.equal(loadDataDir({ flags: {}, env: {} }), join(homedir(), '.molecule'))
  assert.equal(loadDataDir({ flags: {}, env: { MOLECULE_HOME: '' } }), join(homedir(), '.molecule'))
  assert.equal(loadDataDir({ flags: {}, env: { MOLECULE_HOME: '/srv/m' } }), '/srv/m')
  assert.equal(loadDataDir({ flags: { 'data-dir': 'here' }, env: { MOLECULE_HOME: '/srv/m' } }), resolve('here'))
})

test('a flag wins over the environment, the environment over the file, the file over the default', async (t) => {
  const text = 'port: 1\nhost: file\ndrain: 3s\n'
  const sources = withFile(t, text, { flags: { port: '3' }, env: { MOLECULE_PORT: '2', MOLECULE_HOST: 'environment' } })
  const config = await loadConfig(sources)
  assert.equal(config.port, 3)
  assert.equal(config.host, 'environment')
  assert.equal(config.drainMs, 3000)
  assert.equal(config.maxBlockMs, 120_000)
})

test('PL-14 public-url takes origins, trusted-proxy takes addresses and ranges', async (t) => {
  const text = 'public-url: [https://Molecule.example/, "http://box.lan:8080"]\ntrusted-proxy: [10.0.0.0/8, "::1"]\n'
  const { publicUrls, trustedProxies } = await loadConfig(withFile(t, text))
  assert.deepEqual(publicUrls, ['https://molecule.example', 'http://box.lan:8080'])
  assert.deepEqual(trustedProxies, ['10.0.0.0/8', '::1'])
  for (const range of ['proxy.lan', '10.0.0.0/33', '10.0.0.0/8/8', '::/129', '10.0.0.0/'])
    await assert.rejects(loadConfig(withFile(t, '', { env: { MOLECULE_TRUSTED_PROXY: range } })), /address or a range/)
})

test('allow-outbound is a list in the file and comma-separated elsewhere', async (t) => {
  const inFile = await loadConfig(withFile(t, 'allow-outbound: [10.0.0.0/8, hook.test]\n'))
  assert.deepEqual(inFile.allowOutbound, ['10.0.0.0/8', 'hook.test'])
  const inVariable = withFile(t, '', { env: { MOLECULE_ALLOW_OUTBOUND: '127.0.0.1/32, hook.test,' } })
  assert.deepEqual((await loadConfig(inVariable)).allowOutbound, ['127.0.0.1/32', 'hook.test'])
  await assert.rejects(loadConfig(withFile(t, 'allow-outbound: [1]\n')), /allow-outbound.*list of texts/)
})

test('an empty environment variable counts as unset', async (t) => {
  const config = await loadConfig(withFile(t, 'port: 1\n', { env: { MOLECULE_PORT: '', MOLECULE_LOG_LEVEL: '' } }))
  assert.equal(config.port, 1)
  assert.equal(config.logLevel, 'info')
})

test('durations are Go durations; a bare number in the file is seconds', async (t) => {
  const sources = withFile(t, 'max-block: 5\n', { flags: { drain: '1m30s' } })
  const config = await loadConfig(sources)
  assert.equal(config.maxBlockMs, 5000)
  assert.equal(config.drainMs, 90_000)
  assert.equal((await loadConfig({ ...sources, flags: { drain: '0' } })).drainMs, 0)
})

test('an invalid value is refused with the key, its source and the value', async (t) => {
  const cases: readonly [Partial<ConfigSources>, string, RegExp][] = [
    [{ flags: { port: '65536' } }, '', /"port" from --port cannot be "65536"/],
    [{ flags: { port: '80a' } }, '', /"port" from --port/],
    [
      { flags: { port: '80', 'grpc-port': '80' } },
      '',
      /"grpc-port" from --grpc-port cannot be "80": it must not be the port of HTTP/,
    ],
    [{ env: { MOLECULE_PORT: '-1' } }, '', /"port" from MOLECULE_PORT cannot be "-1"/],
    [{ flags: { host: ' ' } }, '', /"host" from --host/],
    [{ flags: { drain: '10' } }, '', /"drain" from --drain cannot be "10"/],
    [{ env: { MOLECULE_MAX_BLOCK: '-5s' } }, '', /"max-block" from MOLECULE_MAX_BLOCK/],
    [{ env: { MOLECULE_LOG_LEVEL: 'loud' } }, '', /"log-level" from MOLECULE_LOG_LEVEL .*debug, info/],
    [{}, 'port: [1]', /"port" from .*molecule.yaml cannot be \[1\]/],
    [{}, 'drain: true', /"drain" from .*molecule.yaml/],
  ]
  for (const [sources, text, message] of cases) {
    // A flag was typed wrongly; a variable or a file was set wrongly.
    const code = sources.flags === undefined ? 'bad_config' : 'invalid_request'
    await assert.rejects(loadConfig(withFile(t, text, sources)), { code, message })
  }
})

test('an invalid database URL is refused without showing its password', async (t) => {
  const sources = withFile(t, '', { env: { DATABASE_URL: 'mysql://me:hunter2@db/molecule' } })
  await assert.rejects(loadConfig(sources), (error: Error) => {
    assert.match(error.message, /"database" from DATABASE_URL/)
    assert.doesNotMatch(error.message, /hunter2/)
    return true
  })
})

test('a file with an unknown key, invalid YAML or no map is refused with its path', async (t) => {
  for (const [text, problem] of [
    ['prot: 80\n', /"prot" is not one of allow-outbound, cgroups, database, drain, grpc-port, host/],
    ['data-dir: /elsewhere\n', /"data-dir" is not one of/],
    ['port: "80\n', /line \d/],
    ['- port\n', /must be a map/],
  ] as const) {
    const sources = withFile(t, text)
    await assert.rejects(loadConfig(sources), (error: Error) => {
      assert.ok(error.message.startsWith(sources.path), error.message)
      assert.match(error.message, problem)
      return true
    })
  }
})

test('an empty file counts as no file; an unreadable one is an error', async (t) => {
  assert.equal((await loadConfig(withFile(t, '# nothing\n'))).port, 8080)
  const dir = temporaryDir(t)
  mkdirSync(join(dir, PLATFORM_CONFIG_FILE))
  await assert.rejects(loadConfig({ flags: {}, env: { MOLECULE_HOME: dir } }), { message: /cannot be read \(EISDIR\)/ })
})

test('RE-7 the floor of free space is a size with a unit, or a number of bytes', async (t) => {
  const folder = temporaryDir(t)
  const load = (value: string) => loadConfig({ flags: { 'data-dir': folder, 'min-free-space': value }, env: {} })
  const sizes = { '0': 0, '1024': 1024, '2GB': 2e9, '3 GiB': 3 * 1024 ** 3, '500MiB': 500 * 1024 ** 2, '7KB': 7000 }
  for (const [text, bytes] of Object.entries(sizes)) assert.equal((await load(text)).minFreeBytes, bytes, text)
  for (const wrong of ['', '-1', '5 apples', 'MiB', '1.5GB', '5constructor']) {
    await assert.rejects(load(wrong), { code: 'invalid_request', message: /min-free-space/ }, wrong)
  }
})

test('RE-5 cgroups is auto or off, in the file also as the word that YAML reads as a boolean', async (t) => {
  for (const text of ['cgroups: off\n', 'cgroups: false\n', "cgroups: 'off'\n"]) {
    assert.equal((await loadConfig(withFile(t, text))).usesCgroups, false, text)
  }
  assert.equal((await loadConfig(withFile(t, 'cgroups: auto\n'))).usesCgroups, true)
  await assert.rejects(loadConfig(withFile(t, 'cgroups: maybe\n')), { message: /cgroups.*must be auto or off/ })
})
