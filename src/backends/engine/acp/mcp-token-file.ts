/**
 * The MCP server of a conversation for an agent of unknown habits. Some put what they get over ACP on the command line of
 * another program (claude-agent-acp does), which every user of the machine can read. So such an agent gets the server as
 * a program that reads its token from a private file. Invariant: the token itself is not sent to the agent.
 */
import type { McpServer } from '../../backend.ts'
import type { PrivateFolder } from '../files/private-folder.ts'

/** Written at each turn, so that a renewed token is used. */
export function withTokenFile(server: McpServer, workspaceId: string, folder: PrivateFolder): McpServer {
  if (!('url' in server)) return server
  const { name, token, tokenVariable, program } = server
  const { [tokenVariable]: _token, ...env } = program.env
  const file = folder.write(`${name}.token`, token)
  const own = { MOLECULE_WORKSPACE_ID: workspaceId, [`${tokenVariable}_FILE`]: file }
  return { name, command: program.command, args: program.args, env: { ...env, ...own } }
}
