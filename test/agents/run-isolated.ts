/**
 * Runs a command apart from everything: in a network that has nothing but loopback, so that no real CLI can reach a
 * vendor, and with a bare environment, so that none finds a key or a setting of the user. Linux only, and only where
 * the system lets this user make a network namespace.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'

/** As root, and for everybody else by a user namespace of their own. */
const UNSHARE_COMMANDS = [
  ['unshare', '-n'],
  ['unshare', '-rn'],
] as const
/** A new namespace has its loopback down; each of these brings it up where it is installed. */
const LOOPBACK_UP = '{ ip link set lo up || ifconfig lo up || busybox ip link set lo up; } 2>/dev/null'
/** The home is where the CLIs are installed; those that run get another. */
const KEPT_VARIABLES = ['PATH', 'HOME', 'XDG_CACHE_HOME', 'TMPDIR', 'LANG', 'LC_ALL', 'TZ', 'USER', 'SHELL', 'TERM']

/** Passed on to the whole group: a platform that is told to end takes its agents with it. */
const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

const NO_NETWORK = 'This system allows no network of its own (unshare -n, ip link set lo up)'

/**
 * The exit code of the command. Where the system allows no such network it is refused, unless the network there is may
 * be used: the CLIs are set up for the fake model alone, but nothing would hold one that asks elsewhere all the same.
 */
export async function runIsolated(command: readonly string[], mayUseNetwork: boolean): Promise<number> {
  const inside = UNSHARE_COMMANDS.map(wrap).find(works)
  if (inside === undefined) {
    if (!mayUseNetwork) throw new Error(`${NO_NETWORK}: refused. --allow-network runs it in the network there is.`)
    process.stderr.write(`${NO_NETWORK}: running in the network there is.\n`)
  }
  const [program = '', ...args] = inside === undefined ? command : inside(command)
  const env = Object.fromEntries(KEPT_VARIABLES.map((name) => [name, process.env[name]]))
  const child = spawn(program, args, { stdio: 'inherit', env, detached: true })
  const stop = () => child.pid !== undefined && process.kill(-child.pid, 'SIGTERM')
  for (const signal of STOP_SIGNALS) process.on(signal, stop)
  const [code] = await once(child, 'exit')
  for (const signal of STOP_SIGNALS) process.off(signal, stop)
  return code ?? 1
}

type Wrap = (command: readonly string[]) => string[]

const wrap =
  (way: readonly string[]): Wrap =>
  (command) => [...way, 'sh', '-c', `${LOOPBACK_UP} && exec "$@"`, 'sh', ...command]

/** That loopback is up inside, and that it is all there is. */
function works(inside: Wrap): boolean {
  const look = "console.log(Object.keys(require('node:os').networkInterfaces()).join())"
  const [program = '', ...args] = inside([process.execPath, '-e', look])
  const { status, stdout } = spawnSync(program, args, { encoding: 'utf8' })
  return status === 0 && stdout.trim() === 'lo'
}
