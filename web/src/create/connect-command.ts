/** The command that a person runs on another machine. Pure. */

/** Only the machine itself reaches these. */
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/

export const isLoopback = (url: string): boolean => LOOPBACK.test(new URL(url).hostname)

/** The address in the command that the platform gives for a new workspace: its public URL, where its owner has set one. */
export function urlOfCommand(command: string): string | undefined {
  const url = /--api-url (\S+)/.exec(command)?.[1]
  return url !== undefined && URL.canParse(url) ? url : undefined
}

export interface ConnectCommandInput {
  readonly url: string
  /** Through the environment: other users of a machine can read the arguments of its processes. */
  readonly token?: string
}

export function connectCommand(id: string, { url, token }: ConnectCommandInput): string {
  const connect = `bin/molecule connect ${id}`
  const rest = `--api-url ${url} --dir FOLDER`
  return token === undefined ? `${connect} ${rest}` : `MOLECULE_WORKSPACE_TOKEN=${token} \\\n  ${connect} \\\n  ${rest}`
}
