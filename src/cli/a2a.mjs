/** Entry of `a2a`: `launch.mjs` runs on any Node and loads `a2a.ts`. */
import { launch } from './launch.mjs'

await launch(() => import('./a2a.ts'))
