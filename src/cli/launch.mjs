/**
 * Runs before any TypeScript is loaded, for both commands. Plain JavaScript that every Node since 18 can parse, so that
 * a machine that cannot run Molecule gets a sentence and not a stack trace.
 */
import module from 'node:module'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

export const NODE_MAJOR_MIN = 24
const ROOT = resolve(fileURLToPath(import.meta.url), '../../..')

/**
 * Loads the command and runs it with this process's arguments; the number it returns becomes the exit code.
 *
 * @param {() => Promise<{ main(argv: string[]): Promise<number> }>} load
 */
export async function launch(load) {
  if (Number.parseInt(process.versions.node, 10) < NODE_MAJOR_MIN) {
    return fail(
      `Molecule needs Node.js ${NODE_MAJOR_MIN} or newer and this is ${process.versions.node}: ` +
        `run "npm install" in ${ROOT}, which installs one, or install it yourself.`,
    )
  }
  // Not in the shared temporary folder: another user of the machine could plant code there.
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
 * True for a missing package. A missing file of ours is a defect, and its error is shown in full.
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
