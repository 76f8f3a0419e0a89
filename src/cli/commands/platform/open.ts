/**
 * `molecule open` and `molecule login`: a new link that logs one browser in, once. `open` also opens the browser where
 * this machine has one. The link goes to the browser through a file that only its owner can read: every user of the
 * machine can read the arguments of a process. The admin token stays in the header of one call.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Command, Option } from 'commander'
import type { ApiBody } from '../../../api/api.ts'
import { findProgram } from '../../../backends/engine/probe/validate-cli.ts'
import type { LoginLinkView } from '../../../client/views.ts'
import { isHttpUrl } from '../../../config/config.ts'
import type { CommandContext, DefineCommand } from '../../command-context.ts'
import { writeFileAtomically } from '../../data-folder/data-folder.ts'
import { formatSeconds } from '../../terminal/human-time.ts'
import type { Environment } from '../../terminal/terminal.ts'

export const define: DefineCommand = (command, openContext) => {
  withLoginOptions(command)
    .option('--print', 'print the link and open no browser, as "molecule login" does')
    .action(async ({ print, ...login }: LoginOptions & { readonly print?: boolean }) =>
      open(await openContext(), login, print !== true),
    )
}

/** `molecule login`. */
export const defineLogin: DefineCommand = (command, openContext) => {
  withLoginOptions(command).action(async (login: LoginOptions) => open(await openContext(), login, false))
}

type LoginOptions = NonNullable<ApiBody<'POST /login-links'>>

const withLoginOptions = (command: Command): Command =>
  command
    .addOption(new Option('--role <role>', 'what the browser may do (admin)').choices(['admin', 'member', 'viewer']))
    .option('--name <name>', 'who uses the browser, for the list of sessions (browser)')

async function open(context: CommandContext, login: LoginOptions, wantsBrowser: boolean): Promise<void> {
  const link = await context.platform().call('POST /login-links', { body: login })
  const opener = wantsBrowser ? await findOpener(context.terminal.env) : undefined
  const opened = opener !== undefined && (await openBrowser(opener, link, context))
  await context.show({ ...link, opened }, () => {
    const life = `It works once, within ${formatSeconds(link.expires_in)}.`
    return opened
      ? `A browser opens. If it shows nothing, use this link. ${life}\n${link.url}\n`
      : `${link.url}\n${life}\n`
  })
}

/** The program that opens a page in the person's browser; undefined on a machine without a screen. */
async function findOpener(env: Environment): Promise<string | undefined> {
  // Over SSH the browser would open on a screen that the person does not see.
  if (env['SSH_CONNECTION']) return undefined
  const onPath = async (name: string) => (await findProgram(name, env['PATH'] ?? '')).path
  if (process.platform === 'darwin') return await onPath('open')
  if (!env['DISPLAY'] && !env['WAYLAND_DISPLAY'] && !env['WSL_DISTRO_NAME']) return undefined
  return (await onPath('xdg-open')) ?? (await onPath('wslview'))
}

/** True when the opener could be started. */
async function openBrowser(opener: string, link: LoginLinkView, { dataDir }: CommandContext): Promise<boolean> {
  // Prevents markup of a foreign platform in a local page: a parsed URL has its quotes and brackets encoded.
  if (!isHttpUrl(link.url)) return false
  const url = new URL(link.url).href
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const page = join(dataDir, 'open.html')
  writeFileAtomically(
    page,
    `<!doctype html><title>Molecule</title><meta http-equiv="refresh" content="0;url=${url}">\n`,
  )
  const child = spawn(opener, [pathToFileURL(page).href], { detached: true, stdio: 'ignore' })
  try {
    await once(child, 'spawn')
    child.unref()
    return true
  } catch {
    // The link is printed in any case.
    return false
  }
}
