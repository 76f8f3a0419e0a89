/**
 * `molecule pending`: lists everything that waits for a person, shows one in full, and answers it. The platform names the
 * ways out of each (`GET /needs-you`); a subcommand is the name of one.
 */
import { allowAlways, type NeedView, type RuleChoiceView, readNeeds } from '../../../client/needs.ts'
import type { PlatformClient } from '../../../client/platform-client.ts'
import { MoleculeError } from '../../../errors.ts'
import { ulid } from '../../../ids.ts'
import { printable, printableName, withoutControls } from '../../../printable.ts'
import { usdText } from '../../../usd.ts'
import type { CommandContext, DefineCommand } from '../../command-context.ts'
import { kindText, NEED_COLUMNS } from '../../terminal/need-text.ts'
import { shellQuoted } from '../../terminal/own-command.ts'
import { readUsd } from '../../terminal/read-usd.ts'

const ID_HELP = 'the id that "molecule pending" shows'

/** The ways out that need nothing but the id. */
const ACTIONS: Readonly<Record<string, string>> = {
  deny: 'deny what an agent asked for; its turn continues',
  replay: 'send a message that failed for good again',
  resume: 'let a schedule that the platform paused go on; it is yours from then on',
  arrived: 'an answer whose delivery is unknown has arrived',
  resend: 'send an answer again that may not have arrived',
  approve: 'let a person talk to a bot; the messages that were held are answered',
  refuse: 'do not let a person talk to a bot; the messages that were held are dropped',
  more: 'let a workspace run twice as many turns an hour; the messages that wait for that go on',
  check: 'check a workspace again after you logged its agent in or mended it',
}

const DONE: Readonly<Record<string, string>> = {
  allow: 'allowed',
  deny: 'denied',
  replay: 'replayed',
  discard: 'discarded',
  arrived: 'noted as arrived:',
  resend: 'sending again',
  approve: 'approved',
  refuse: 'refused',
  check: 'checked',
  resume: 'resumed',
  more: 'allowed more turns an hour:',
}

export const define: DefineCommand = (command, openContext) => {
  command
    .command('list', { isDefault: true })
    .description('list everything that waits for you')
    .action(async () => list(await openContext()))
  command
    .command('show')
    .description('show one in full, with the commands that answer it, and what "always allow" would cover')
    .argument('<id>', ID_HELP)
    .action(async (id: string) => showNeed(await openContext(), id))
  command
    .command('allow')
    .description('allow what an agent asked for')
    .argument('<id>', ID_HELP)
    .option('--always', 'do not ask for exactly this again in its workspace ("molecule rules" lists and revokes)')
    .option('--pattern <pattern>', 'with --always: another pattern that "molecule pending show" names')
    .action(async (id: string, flags: AllowFlags) => allow(await openContext(), id, flags))
  command
    .command('answer')
    .description('answer the question of an agent')
    .argument('<id>', ID_HELP)
    .argument('<text...>')
    .action(async (id: string, words: string[]) => answer(await openContext(), id, words.join(' ')))
  command
    .command('raise')
    .description('raise a budget that is spent; the messages that wait for it go on')
    .argument('<id>', ID_HELP)
    .argument('<usd>', 'the new budget in US dollars, with what is spent already', readUsd)
    .action(async (id: string, maxCostUsd: number) => {
      const { platform, show } = await openContext()
      const body = { decision: 'raise', max_cost_usd: maxCostUsd } as const
      await platform().call('POST /budgets/{id}', { id, body })
      await show({ id, decision: 'raise', max_cost_usd: maxCostUsd }, () => `raised ${id} to ${usdText(maxCostUsd)}\n`)
    })
  command
    .command('stop')
    .description('stop at a budget that is spent; the messages that wait for it are cancelled')
    .argument('<id>', ID_HELP)
    .action(async (id: string) => {
      const { platform, show } = await openContext()
      await platform().call('POST /budgets/{id}', { id, body: { decision: 'stop' } })
      await show({ id, decision: 'stop' }, () => `stopped ${id}; what waited for it is cancelled\n`)
    })
  command
    .command('discard')
    .description(
      'drop a message that failed for good or a schedule that the platform paused, or dismiss a reply that was changed on the disk',
    )
    .argument('[id]', ID_HELP)
    .option('--all', 'everything that can be discarded')
    .option('--yes', 'with --all: do not ask')
    .action(async (id: string | undefined, { all, yes }: { all?: true; yes?: true }) => {
      if ((id === undefined) !== (all === true)) throw new MoleculeError('invalid_request', 'name one id, or use --all')
      const context = await openContext()
      if (id !== undefined) return await act(context, id, 'discard')
      const { discardAll } = await import('./pending-discard.ts')
      await discardAll(context, yes === true)
    })
  for (const [name, description] of Object.entries(ACTIONS)) {
    command
      .command(name)
      .description(description)
      .argument('<id>', ID_HELP)
      .action(async (id: string) => act(await openContext(), id, name))
  }
}

interface AllowFlags {
  readonly always?: true
  readonly pattern?: string
}

async function allow(context: CommandContext, id: string, { always, pattern }: AllowFlags): Promise<void> {
  const { platform, show, command } = context
  if (always === true) {
    const rule = await allowAlways(platform(), id, pattern)
    const covered = printable(`${rule.tool}: ${rule.pattern}`)
    const revoke = `${command} rules revoke ${rule.workspace_id} ${rule.id}`
    const text = `allowed ${id}\nfrom now on ${covered} is allowed without asking; to end it: ${revoke}\n`
    await show({ id, decision: 'allow', rule }, () => text)
    return
  }
  if (pattern !== undefined) throw new MoleculeError('invalid_request', '--pattern needs --always')
  await act(context, id, 'allow')
}

async function act({ platform, show }: CommandContext, id: string, name: string): Promise<void> {
  const client = platform()
  // An ask is answered by its id alone: the platform says who answered it before, or that it timed out.
  if (name === 'allow' || name === 'deny') {
    await client.call('POST /pending/{id}', { id, body: { decision: name } })
  } else {
    const need = await findNeed(client, id)
    const action = need.actions.find((one) => one.name === name)
    if (action === undefined) {
      const names = need.actions.map((one) => one.name).join(', ')
      throw new MoleculeError(
        'unsupported_operation',
        `${id} is a ${kindText(need)}; it can be answered with: ${names}`,
      )
    }
    await client.follow(action)
  }
  await show({ id, decision: name }, () => `${DONE[name]} ${id}\n`)
}

async function answer({ platform, show }: CommandContext, id: string, text: string): Promise<void> {
  const client = platform()
  const { kind, workspace_id: workspaceId, context_id: contextId } = await findNeed(client, id)
  if (kind !== 'question') throw new MoleculeError('unsupported_operation', `${id} asks no question`)
  const about = { taskId: id, contextId }
  const message = { messageId: ulid(), role: 'ROLE_USER', parts: [{ text }], ...about } as const
  const task = await client.sendMessage(workspaceId, message, { wait: false })
  await show({ id, decision: 'answer', state: task.status.state }, () => `answered ${id}\n`)
}

async function findNeed(client: PlatformClient, id: string): Promise<NeedView> {
  const need = (await readNeeds(client)).needs.find((one) => one.id === id)
  if (need === undefined) throw new MoleculeError('not_found', `nothing with the id ${id} waits for your answer`)
  return need
}

async function showNeed({ platform, show, command }: CommandContext, id: string): Promise<void> {
  const need = await findNeed(platform(), id)
  const { permission, text, reason } = need
  const head =
    permission === undefined
      ? [reason, text ?? '']
      : [`${printableName(permission.tool)}: ${printable(permission.subject)}`]
  const ways = need.actions.filter(({ name }) => name !== 'always').map((way) => wayText(`${command} pending`, id, way))
  const choices = [permission?.would_cover, permission?.would_cover_more].filter((one) => one !== undefined)
  const rules = choices.map((one, index) => choiceText(`${command} pending allow ${id} --always`, one, index > 0))
  const parts = [...head.map(withoutControls), ways.join(''), ...rules].filter((part) => part !== '')
  await show(need, () => `${parts.join('\n\n').trimEnd()}\n`)
}

function wayText(pending: string, id: string, { name, label, body }: NeedView['actions'][number]): string {
  const amount = body?.['max_cost_usd']
  const more = name === 'answer' ? ' YOUR ANSWER' : ''
  return `${label}\n  ${pending} ${name} ${id}${amount === undefined ? more : ` ${amount}`}\n`
}

function choiceText(allowing: string, { pattern, sentence }: RuleChoiceView, isWider: boolean): string {
  return `Always allow. ${withoutControls(sentence)}\n  ${allowing}${isWider ? ` --pattern ${shellQuoted(pattern)}` : ''}`
}

async function list({ platform, show, command, table: tableOf }: CommandContext): Promise<void> {
  const { needs } = await readNeeds(platform())
  await show(needs, () => {
    const table = tableOf(needs, NEED_COLUMNS, 'Nothing needs you.')
    return needs.length === 0
      ? table
      : `${table}\n"${command} pending show ID" shows one in full and how to answer it.\n`
  })
}
