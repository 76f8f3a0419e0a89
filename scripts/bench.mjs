/** `npm run bench -- <name>` runs `bench/<name>.ts` with the arguments that follow; without a name it lists the benchmarks. */
import { spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const names = globSync('bench/*.ts', { cwd: root })
  .filter((file) => !file.endsWith('.test.ts'))
  .map((file) => basename(file, '.ts'))
  .sort()
const [name, ...args] = process.argv.slice(2)

if (name !== undefined && names.includes(name)) {
  const { status } = spawnSync(process.execPath, [`bench/${name}.ts`, ...args], { cwd: root, stdio: 'inherit' })
  process.exitCode = status ?? 1
} else {
  const problem = name === undefined ? 'Name a benchmark' : `There is no benchmark "${name}"`
  console.error(`${problem}: ${names.join(', ') || 'none exists'}.`)
  process.exitCode = name === undefined ? 0 : 1
}
