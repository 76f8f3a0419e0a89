/** Entry of `molecule`: `launch.mjs` runs on any Node and loads `molecule.ts`. */
import { launch } from './launch.mjs'

await launch(() => import('./molecule.ts'))
