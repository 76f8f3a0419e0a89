/** `molecule platform health`: readiness, version and load of the platform. */
import { readReadiness } from '../../../client/readiness.ts'
import { listWorkspaces } from '../../../client/workspaces.ts'
import type { CommandContext, DefineCommand } from '../../command-context.ts'
import { EXIT_FAILED, ExitError } from '../../exit-codes.ts'
import { renderFields } from '../../terminal/output.ts'

export const define: DefineCommand = (command, openContext) => {
  command
    .command('health')
    .description('show whether the platform runs and is ready; exit code 1 if not')
    .action(async () => health(await openContext()))
}

async function health({ platform, apiUrl, show }: CommandContext): Promise<void> {
  const client = platform()
  const { ready, reason } = await readReadiness(client)
  const { version, node } = await client.call('GET /version')
  const workspaces = await listWorkspaces(client)
  const count = (status: string) => workspaces.filter((workspace) => workspace.status === status).length
  const states = Object.fromEntries(
    [...new Set(workspaces.map(({ status }) => status))].map((one) => [one, count(one)]),
  )
  const waiting = workspaces.reduce((sum, { queue_depth: depth = 0 }) => sum + depth, 0)
  const running = workspaces.reduce((sum, workspace) => sum + (workspace.running ?? 0), 0)
  const report = {
    url: apiUrl,
    ready,
    reason,
    version,
    node,
    workspaces: states,
    waiting,
    running,
  }
  await show(report, () =>
    renderFields([
      ['url', apiUrl],
      ['ready', ready ? 'yes' : `no: ${reason}`],
      ['version', `${version} on Node ${node}`],
      [
        'workspaces',
        workspaces.length === 0
          ? 'none'
          : Object.entries(states)
              .map(([state, n]) => `${n} ${state}`)
              .join(', '),
      ],
      ['messages', `${waiting} waiting, ${running} running`],
    ]),
  )
  if (!ready) throw new ExitError(EXIT_FAILED)
}
