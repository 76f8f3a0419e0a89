/**
 * Runs a command in isolation: in a network namespace with only loopback, so that no real CLI can reach a vendor, and
 * with a minimal environment, so that no CLI finds a key or a setting of the user. Linux only, and only where the system
 * allows this user to create a network namespace.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'

/** The first works as root; the second also creates a user namespace. */
const UNSHARE_COMMANDS = [
  ['unshare', '-n'],
  ['unshare', '-rn'],
] as const
/** Loopback is down in a new namespace. Tries the programs that can bring it up. */
const LOOPBACK_UP = '{ ip link set lo up || ifconfig lo up || busybox ip link set lo up; } 2>/dev/null'
/** HOME locates the installed CLIs; a CLI that runs gets another home. */
const KEPT_VARIABLES = ['PATH', 'HOME', 'XDG_CACHE_HOME', 'TMPDIR', 'LANG', 'LC_ALL', 'TZ', 'USER', 'SHELL', 'TERM']

/** Forwarded to the whole process group, so that platforms stop their agents. */
const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

const NO_NETWORK = 'This system does not allow a network namespace (unshare -n, ip link set lo up)'

/**
 * Runs the command; its exit code. Where the system allows no network namespace it refuses, unless `mayUseNetwork`: the
 * CLIs are configured for the fake model only, but then nothing stops one that calls another host.
 */
export async function runIsolated(command: readonly string[], mayUseNetwork: boolean): Promise<number> {
  const isolate = UNSHARE_COMMANDS.map(wrap).find(works)
  if (isolate === undefined) {
    if (!mayUseNetwork) throw new Error(`${NO_NETWORK}: refused. Use --allow-network to run with the normal network.`)
    process.stderr.write(`${NO_NETWORK}: running with the normal network.\n`)
  }
  const [program = '', ...args] = isolate === undefined ? command : isolate(command)
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
  (unshare: readonly string[]): Wrap =>
  (command) => [...unshare, 'sh', '-c', `${LOOPBACK_UP} && exec "$@"`, 'sh', ...command]

/** Whether loopback is up inside and is the only interface. */
function works(isolate: Wrap): boolean {
  const script = "console.log(Object.keys(require('node:os').networkInterfaces()).join())"
  const [program = '', ...args] = isolate([process.execPath, '-e', script])
  const { status, stdout } = spawnSync(program, args, { encoding: 'utf8' })
  return status === 0 && stdout.trim() === 'lo'
}
