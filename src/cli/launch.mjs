/**
 * What both commands do before any TypeScript is loaded. Plain JavaScript that every Node since 18 can parse, so that
 * on a machine that cannot run Molecule the answer is a sentence and not a stack trace.
 */
import module from 'node:module'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const NODE_MAJOR_MIN = 24
const ROOT = resolve(fileURLToPath(import.meta.url), '../../..')

/**
 * Loads the command and runs it on this process's arguments; its answer becomes the exit code.
 *
 * @param {() => Promise<{ main(argv: string[]): Promise<number> }>} load
 */
export async function launch(load) {
  if (Number.parseInt(process.versions.node, 10) < NODE_MAJOR_MIN) {
    return fail(
      `Molecule needs Node.js ${NODE_MAJOR_MIN} or newer and this is ${process.versions.node}: ` +
        `run "npm install" in ${ROOT}, which brings one along, or install it yourself.`,
    )
  }
  // Kept with the packages: in the shared temporary folder another user of the machine could plant code for us.
  module.enableCompileCache(`${ROOT}/node_modules/.cache/compile`)
  try {
    const { main } = await load()
    process.exitCode = await main(process.argv.slice(2))
  } catch (error) {
    if (!isPackageMissing(error)) throw error
    fail(`Packages that Molecule needs are not installed: run "npm install" in ${ROOT}, then try again.`)
  }
}

/**
 * A package that is not there, as opposed to a file of ours, which would be a defect to be shown in full.
 *
 * @param {unknown} error
 */
function isPackageMissing(error) {
  if (!(error instanceof Error) || !('code' in error)) return false
  return error.code === 'ERR_MODULE_NOT_FOUND' && error.message.startsWith('Cannot find package')
}

/** @param {string} sentence */
function fail(sentence) {
  console.error(sentence)
  process.exitCode = 1
}
