/** The entry of `molecule`: what can be said on any Node is in `launch.mjs`, everything else in `molecule.ts`. */
import { launch } from './launch.mjs'

await launch(() => import('./molecule.ts'))
