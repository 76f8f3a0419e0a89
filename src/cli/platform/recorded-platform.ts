/**
 * Decides whether the admin token of a data folder may be sent to a URL. Prevents a theft: while the platform is down,
 * any user of the machine can listen on its port. So the token goes only to the process that `platform.json` records,
 * while that very process (pid and start time) holds every socket that listens at the URL.
 */
import { statSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { MoleculeError } from '../../errors.ts'
import { bootId, startTimeOf } from '../../process/identity.ts'
import { announcementPath, type RunningPlatform, readRunningPlatform } from '../data-folder/data-folder.ts'
import { isEnding, listeningPidsByLsof, listeningSockets, socketsOf } from './listening-sockets.ts'

const LOOK_AGAIN_MS = 100

/** Throws unless the recorded platform listens at this URL. An error that the next start would end is retryable. */
export async function requireRecordedPlatform(dataDir: string, url: string): Promise<void> {
  const running = readRunningPlatform(dataDir)
  if (running === undefined || !(await isAlive(running))) throw notRunning(dataDir)
  if (!isAtUrl(running, url)) throw notSent(dataDir, `it listens at ${running.url} and not at ${url}`)
  const owner = statSync(announcementPath(dataDir), { throwIfNoEntry: false })?.uid
  const us = process.getuid?.()
  if (us !== 0 && owner !== us) throw notSent(dataDir, 'the folder belongs to another user')
  let listener = await findListener(running, url)
  if (listener === 'another process') {
    // Prevents that a platform that just ends counts as another process: its socket was listed and its files are closed.
    await setTimeout(LOOK_AGAIN_MS)
    listener = (await isAlive(running)) ? await findListener(running, url) : 'nobody'
  }
  if (listener === 'nobody') throw notRunning(dataDir)
  if (listener === 'another process') throw notSent(dataDir, `another process listens at ${url}`)
}

export const LOOPBACK_HOSTS: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

/** True for the recorded URL, and for another name of loopback with the same port. */
export function isAtUrl(running: RunningPlatform, url: string): boolean {
  const [asked, recorded] = [new URL(url), new URL(running.url)]
  if (asked.protocol !== recorded.protocol || portOf(asked) !== portOf(recorded)) return false
  return asked.hostname === recorded.hostname || [asked, recorded].every(({ hostname }) => LOOPBACK_HOSTS.has(hostname))
}

const portOf = ({ port, protocol }: URL): number => Number(port || (protocol === 'https:' ? 443 : 80))

/** True while the very process that the file records runs. */
export async function isAlive({ pid, startTime, bootId: boot }: RunningPlatform): Promise<boolean> {
  return startTime !== '' && boot === (await bootId()) && startTime === (await startTimeOf(pid))
}

async function findListener({ pid }: RunningPlatform, url: string): Promise<'platform' | 'another process' | 'nobody'> {
  const address = new URL(url)
  if (process.platform !== 'linux') {
    const pids = await listeningPidsByLsof(portOf(address))
    if (pids.length === 0) return 'nobody'
    return pids.every((listening) => listening === pid) ? 'platform' : 'another process'
  }
  const answers = ANSWERING_ADDRESSES[address.hostname]
  const sockets = listeningSockets(portOf(address)).filter((socket) => answers?.includes(socket.address) ?? true)
  if (sockets.length === 0) return 'nobody'
  const held = socketsOf(pid)
  if (sockets.every(({ inode }) => held.has(inode))) return 'platform'
  return isEnding(pid) ? 'nobody' : 'another process'
}

const WILDCARDS = ['0'.repeat(8), '0'.repeat(32)]
/** Local addresses, as /proc writes them, at which a socket answers calls to this host; for other hosts all count. */
const ANSWERING_ADDRESSES: Readonly<Record<string, readonly string[]>> = {
  '127.0.0.1': [...WILDCARDS, '0100007F', `${'0'.repeat(16)}FFFF00000100007F`],
  '[::1]': [...WILDCARDS, `${'0'.repeat(24)}01000000`],
}

function notRunning(dataDir: string): MoleculeError {
  const message = `the platform of the data folder ${dataDir} does not run; start it with "molecule up". To use another platform, set MOLECULE_API_URL and MOLECULE_ADMIN_TOKEN, or MOLECULE_HOME to its data folder`
  return new MoleculeError('timeout', message, { retryable: true })
}

function notSent(dataDir: string, reason: string): MoleculeError {
  const message = `the admin token was not sent: it is for the platform of the data folder ${dataDir}, but ${reason}. To use another platform, set MOLECULE_API_URL and MOLECULE_ADMIN_TOKEN, or MOLECULE_HOME to its data folder`
  return new MoleculeError('unauthenticated', message)
}
