/**
 * What a stranger does with the API document: generates types with openapi-typescript, compiles a program that uses them with
 * openapi-fetch, and runs it against the platform.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, test } from 'node:test'
import { type PlatformUnderTest, startPlatform } from '../harness/platform.ts'
import { GENERATOR_FOLDER } from './install-clients.ts'

const TSC = resolve('node_modules/.bin/tsc')
const TSC_OPTIONS = ['--strict', '--noEmit', '--skipLibCheck', '--target', 'es2024', '--lib', 'es2024,dom']
const TSC_MODULES = ['--module', 'nodenext', '--allowImportingTsExtensions', '--types', 'node']

const PROGRAM = `
import createClient from 'openapi-fetch'
import type { paths } from './api.d.ts'

const { MOLECULE_API_URL: baseUrl = '', MOLECULE_TOKEN: token = '' } = process.env
const api = createClient<paths>({ baseUrl, headers: { Authorization: 'Bearer ' + token } })
const created = await api.POST('/workspaces', { body: { name: 'reader', runtime: 'mock', role: 'reads' } })
if (created.data === undefined || !('id' in created.data)) throw new Error(JSON.stringify(created))
const id: string = created.data.id
const read = await api.GET('/workspaces/{id}', { params: { path: { id } } })
const role: string | undefined = read.data?.role
const missing = await api.GET('/workspaces/{id}', { params: { path: { id: 'nobody' } } })
const reason: string | undefined = missing.error?.error.message
console.log(JSON.stringify({ role, reason }))
`

let folder: string
let platform: PlatformUnderTest

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'molecule-generated-'))
  symlinkSync(join(GENERATOR_FOLDER, 'node_modules'), join(folder, 'node_modules'))
  platform = await startPlatform()
  const { body } = await platform.request('GET', '/openapi.json')
  writeFileSync(join(folder, 'openapi.json'), JSON.stringify(body))
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  writeFileSync(join(folder, 'program.ts'), PROGRAM)
  run(process.execPath, ['node_modules/openapi-typescript/bin/cli.js', 'openapi.json', '-o', 'api.d.ts'])
})
after(async () => {
  await platform?.dispose()
  rmSync(folder, { recursive: true, force: true })
})

function run(program: string, args: readonly string[]): string {
  const env = {
    PATH: process.env['PATH'],
    HOME: folder,
    MOLECULE_API_URL: platform.url,
    MOLECULE_TOKEN: platform.token,
  }
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: folder, env, encoding: 'utf8' })
  assert.equal(status, 0, `${stdout}\n${stderr}`)
  return stdout
}

const compile = (file: string) =>
  run(TSC, [...TSC_OPTIONS, ...TSC_MODULES, '--typeRoots', resolve('node_modules/@types'), file])

test('PL-10 the types that openapi-typescript makes of the API document compile, with a program that uses them', () => {
  compile('program.ts')
})

test('PL-10 a program with generated types reads answers and refusals of the platform', () => {
  const printed = JSON.parse(run(process.execPath, ['program.ts']))
  assert.equal(printed.role, 'reads')
  assert.match(printed.reason, /nobody/)
})

test('PL-10 a field that an answer does not have is found by the compiler', () => {
  writeFileSync(join(folder, 'wrong.ts'), PROGRAM.replace('data?.role', 'data?.rolle'))
  assert.throws(() => compile('wrong.ts'), /rolle/)
})
