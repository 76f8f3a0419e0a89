/**
 * Judges how the time of a function grows with its input, in CPU time of the thread, which other programs on the machine
 * do not lengthen. The judgement is about ratios; a run that takes almost nothing is not judged.
 */
import { type RepeatedText, toText } from '../../generators/pattern-texts.ts'

/** Twice the text may take this many times as long. Linear code takes twice as long, quadratic code four times. */
const GROWTH_MAX = 3
const CHARACTERS = 16 * 1024
/** A faster run is linear, or its square is too small to matter: at 64 KB it would take less than RE-13 allows. */
const JUDGED_MS = 3
/** What RE-13 allows, on a machine that does nothing else. */
const MS_PER_64_KB_MAX = 50
/** Linear code fails only far beyond it. */
const MS_PER_64_KB_FAILS = 4 * MS_PER_64_KB_MAX
/** A short text that takes so long shows exponential or cubic growth. A longer one would not end. */
const SHORT_MS_MAX = 50
const TRIES = 3
/** Compilation and collections of garbage look like growth in one round; quadratic code grows in all of them. */
const ROUNDS = 3

/** Undefined where the time grows in step with the text; else a sentence. */
export function judgeGrowth(run: (text: string) => unknown, shape: RepeatedText): string | undefined {
  let problem: string | undefined
  for (let round = 0; round < ROUNDS; round++) {
    problem = judgeRound(run, shape)
    if (problem === undefined) return undefined
  }
  return problem
}

function judgeRound(run: (text: string) => unknown, shape: RepeatedText): string | undefined {
  const cpuMs = (characters: number, tries = 1): number => {
    const text = toText(shape, characters)
    let least = Number.POSITIVE_INFINITY
    for (let count = 0; count < tries; count++) {
      const start = process.threadCpuUsage()
      run(text)
      const { user, system } = process.threadCpuUsage(start)
      least = Math.min(least, (user + system) / 1000)
    }
    return least
  }
  const described = (text: string) => `${text} for ${JSON.stringify(shape).slice(0, 200)}`
  // In small steps: exponential growth that is not seen at 24 characters would not end at 48.
  for (let characters = 16; characters < 2000; characters = Math.ceil(characters * (characters < 64 ? 1.2 : 2))) {
    if (cpuMs(characters) > SHORT_MS_MAX && cpuMs(characters, TRIES) > SHORT_MS_MAX)
      return described(`${characters} characters take more than ${SHORT_MS_MAX} ms`)
  }
  if (cpuMs(CHARACTERS) < JUDGED_MS) return undefined
  const once = cpuMs(CHARACTERS, TRIES)
  if (once < JUDGED_MS) return undefined
  if (4 * once > MS_PER_64_KB_FAILS) return described(`${CHARACTERS} characters take ${once.toFixed(1)} ms`)
  const twice = cpuMs(2 * CHARACTERS, TRIES)
  if (twice <= GROWTH_MAX * once) return undefined
  // These characters are 64 KB.
  const fourTimes = cpuMs(4 * CHARACTERS, 2)
  if (fourTimes <= GROWTH_MAX * twice || fourTimes <= MS_PER_64_KB_MAX) return undefined
  const times = [once, twice, fourTimes].map((ms) => ms.toFixed(1)).join(', ')
  return described(`${CHARACTERS} characters, twice and four times as many take ${times} ms`)
}
