/**
 * The folder of each channel for what must survive a restart and is no secret of the store: `channels/<name>` in the data
 * folder. Invariant: only the user of the platform can read it, and a channel that was removed leaves none.
 */
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

export interface StateFolders {
  /** The path of the channel's folder, made where it is missing. */
  open(channel: string): Promise<string>
  /** Removes the folders of all other channels. */
  keepOnly(channels: readonly string[]): Promise<void>
}

/** As in the API. A name of another form was not made here and stays. */
const CHANNEL_NAME = /^[a-z0-9][a-z0-9-]{0,39}$/

export function createStateFolders(root: string): StateFolders {
  return {
    async open(channel) {
      const path = join(root, channel)
      await mkdir(path, { recursive: true, mode: 0o700 })
      return path
    },
    async keepOnly(channels) {
      const kept = new Set(channels)
      const names = await readdir(root).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return []
        throw error
      })
      for (const name of names) {
        if (!kept.has(name) && CHANNEL_NAME.test(name)) await rm(join(root, name), { recursive: true, force: true })
      }
    },
  }
}
