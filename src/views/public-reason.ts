/**
 * The reason of a workspace's status for callers that do not own it. The owner needs the whole path of a missing program
 * or a bad file; for a viewer, a program or a peer it would describe the disk of the platform (RT-7).
 */

/** In quotes a path may contain spaces. A URL has a letter, a colon or a slash before each of its slashes. */
const PATHS = [/(?<=")(?:\/|[A-Za-z]:\\)[^"\n]*(?=")/g, /(?<![\w.:/\\])(?:\/|[A-Za-z]:\\)[^\s"'`,;()]+/g]

/** What a program printed when it was asked for its version, and what the owner can do about it. */
const PRINTED = /(` failed: [^:\n]{1,40}): [\s\S]*$/

/**
 * Each absolute path is replaced by its last name: `/home/ana/config.yaml:3` by `config.yaml:3`. The words of a program that
 * could not be checked are left out.
 */
export function publicReason(reason: string): string {
  return PATHS.reduce((text, path) => text.replaceAll(path, lastName), reason.replace(PRINTED, '$1'))
}

const lastName = (path: string): string =>
  path
    .split(/[/\\]/)
    .filter((name) => name !== '')
    .at(-1) ?? '/'
