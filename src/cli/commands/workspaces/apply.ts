/**
 * `molecule apply FILE`: makes the workspaces of a team equal to a file. It shows the difference first. In a terminal it
 * asks before it changes anything. A file with a problem changes nothing.
 */
import { readFile, stat } from 'node:fs/promises'
import { MoleculeError } from '../../../errors.ts'
import { withoutControls } from '../../../printable.ts'
import type { CommandContext, DefineCommand } from '../../command-context.ts'
import { applyPlan, type CreatedMember } from '../../team/apply-plan.ts'
import { TEAM_FILE_BYTES_MAX } from '../../team/read-yaml.ts'
import { renderPlan } from '../../team/render-plan.ts'
import { parseTeamFile } from '../../team/team-file.ts'
import { planTeam, type TeamPlan } from '../../team/team-plan.ts'
import { askLine } from '../../terminal/ask-line.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { collectValues, parsePair } from './workspace-create.ts'

export const define: DefineCommand = (command, openContext) => {
  command
    .argument('<file>', 'the file of the team; - reads it from stdin')
    .option('--dry-run', 'only show the difference')
    .option('--prune', 'delete what an earlier apply of this team made and the file no longer has')
    .option('--yes', 'do not ask')
    .option('--set <name=value>', 'the value of a variable of the file; may be repeated', collectValues)
    .option('--write-secrets', 'also write the secrets of the file that are set already; they cannot be compared')
    .action(async (file: string, options: ApplyOptions) => apply(await openContext(), file, options))
}

interface ApplyOptions {
  readonly dryRun?: true
  readonly prune?: true
  readonly yes?: true
  readonly set?: readonly string[]
  readonly writeSecrets?: true
}

async function apply(context: CommandContext, file: string, options: ApplyOptions): Promise<void> {
  const { terminal, output } = context
  const client = context.platform()
  const team = await parseTeamFile(
    await readTeamFile(file, terminal),
    file,
    new Map(options.set?.map((text) => parsePair(text))),
  )
  const { prune = false, writeSecrets = false } = options
  const plan = await planTeam(team, client, { prune, writeSecrets })
  requireYes(plan, terminal, options)
  const asks = options.dryRun !== true && plan.changes.length > 0 && asksFirst(terminal, options)
  const shown = context.withOwnCommand(renderPlan(plan))
  if (output === 'table') terminal.out(shown)
  else if (asks) terminal.err(shown)
  if (asks && !/^y(es)?$/i.test(await askLine(terminal, 'Make these changes? [y/N] ')))
    throw new MoleculeError('canceled', 'nothing was changed')
  const isApplied = options.dryRun !== true
  const created = isApplied ? await applyPlan(plan, client) : []
  await context.show(toResult(plan, created, isApplied), () => (isApplied ? summaryOf(context, plan, created) : ''))
}

/** Prevents that a job without a terminal deletes workspaces, because a name was mistyped in a file. */
function requireYes({ changes }: TeamPlan, terminal: Terminal, options: ApplyOptions): void {
  const deleted = changes.filter((one) => one.action === 'delete')
  if (deleted.length === 0 || options.yes === true || options.dryRun === true || isAtTerminal(terminal)) return
  // The name of a schedule is a phrase with quotes of its own.
  const names = deleted.map((one) => (one.kind === 'schedule' ? one.name : JSON.stringify(one.name))).join(', ')
  const message = `--prune would delete ${names}, and there is no terminal to ask at; add --yes to confirm, or --dry-run to look. Nothing was changed`
  throw new MoleculeError('invalid_request', message)
}

async function readTeamFile(file: string, terminal: Terminal): Promise<string> {
  const text = file === '-' ? await terminal.readInput() : await readWhole(file)
  if (Buffer.byteLength(text) <= TEAM_FILE_BYTES_MAX) return text
  throw tooLarge(file)
}

async function readWhole(file: string): Promise<string> {
  try {
    if ((await stat(file)).size > TEAM_FILE_BYTES_MAX) throw tooLarge(file)
    return await readFile(file, 'utf8')
  } catch (thrown) {
    if (thrown instanceof MoleculeError) throw thrown
    const { code, message } = thrown as NodeJS.ErrnoException
    const reason = code === 'ENOENT' ? 'there is no such file' : message
    throw new MoleculeError('invalid_request', `${file} cannot be read: ${reason}`, { cause: thrown })
  }
}

const tooLarge = (file: string): MoleculeError =>
  new MoleculeError('too_large', `${file} is larger than ${TEAM_FILE_BYTES_MAX} bytes`)

const isAtTerminal = ({ keyboard, interactive }: Terminal): boolean => keyboard !== undefined && interactive

const asksFirst = (terminal: Terminal, { yes }: ApplyOptions): boolean => yes !== true && isAtTerminal(terminal)

function toResult({ team, changes, notes }: TeamPlan, created: readonly CreatedMember[], isApplied: boolean) {
  const shown = changes.map((change) => {
    const { action, name, id } = change
    return { action, name, id, fields: change.action === 'delete' ? [] : change.fields }
  })
  return { team, applied: isApplied, changes: shown, created, notes }
}

/** Nothing where the difference has said that there is nothing to do. */
function summaryOf(context: CommandContext, { changes }: TeamPlan, created: readonly CreatedMember[]): string {
  if (changes.length === 0) return ''
  const { command } = context
  const connects = created.flatMap(({ name, connect }) => {
    const typed = connect?.replace(/^molecule(?= )/, () => command)
    return typed === undefined ? [] : [`connect "${name}" with: ${typed}`]
  })
  return withoutControls(`${[...connects, 'done'].join('\n')}\n`)
}
