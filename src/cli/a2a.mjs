/** The entry of `a2a`: what can be said on any Node is in `launch.mjs`, everything else in `a2a.ts`. */
import { launch } from './launch.mjs'

await launch(() => import('./a2a.ts'))
