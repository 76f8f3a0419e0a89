/** Loads all unit tests into one process; `test.mjs` runs it as if it were one test file and gives it their paths. */
import { pathToFileURL } from 'node:url'

for (const path of process.argv.slice(2)) await import(pathToFileURL(path).href)
