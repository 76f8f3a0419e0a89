/** Which processes of this machine are alive and carry a text in their command line; for "nothing is left" tests. */
import { readdir, readFile } from 'node:fs/promises'

export async function pidsWithCommandLine(text: string): Promise<number[]> {
  const found: number[] = []
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue
    const [commandLine, stat] = await Promise.all([
      readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => ''),
      readFile(`/proc/${name}/stat`, 'utf8').catch(() => ''),
    ])
    const isZombie = /\) Z /.test(stat)
    if (!isZombie && commandLine.replaceAll('\0', ' ').includes(text)) found.push(Number(name))
  }
  return found
}

/** Waits until it is so; the test's own time-out is the limit. */
export async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 20))
}
