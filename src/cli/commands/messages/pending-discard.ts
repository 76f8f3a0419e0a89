/** `molecule pending discard --all`: shows everything that can be discarded, asks, and discards it. */
import { type NeedView, readNeeds } from '../../../client/needs.ts'
import { MoleculeError } from '../../../errors.ts'
import type { CommandContext } from '../../command-context.ts'
import { askLine } from '../../terminal/ask-line.ts'
import { kindText, NEED_COLUMNS } from '../../terminal/need-text.ts'

export async function discardAll(context: CommandContext, yes: boolean): Promise<void> {
  const client = context.platform()
  const { needs } = await readNeeds(client)
  const found = needs.flatMap((need) => {
    const action = need.actions.find(({ name }) => name === 'discard')
    return action === undefined ? [] : [{ need, action }]
  })
  if (found.length > 0 && !yes)
    await confirm(
      context,
      found.map(({ need }) => need),
    )
  const discarded: string[] = []
  let failure: unknown
  for (const { need, action } of found) {
    try {
      await client.follow(action)
      discarded.push(need.id)
    } catch (thrown) {
      // One that a person has handled meanwhile needs nothing any more.
      if (!(thrown instanceof MoleculeError) || thrown.code !== 'not_found') failure ??= thrown
    }
  }
  const lines = discarded.map((id) => `discarded ${id}\n`)
  await context.show({ discarded }, () => lines.join('') || 'Nothing can be discarded.\n')
  if (failure !== undefined) throw failure
}

async function confirm({ terminal, table }: CommandContext, needs: readonly NeedView[]): Promise<void> {
  const counts = new Map<string, number>()
  for (const need of needs) counts.set(kindText(need), (counts.get(kindText(need)) ?? 0) + 1)
  const what = [...counts].map(([kind, count]) => `${count} × ${kind}`).join(', ')
  if (terminal.keyboard === undefined || !terminal.interactive) {
    throw new MoleculeError('invalid_request', `this discards ${what} and cannot be undone; add --yes to confirm`)
  }
  terminal.err(`${table(needs, NEED_COLUMNS, '')}\n`)
  if (!/^y(es)?$/i.test(await askLine(terminal, `Discard these (${what})? It cannot be undone. [y/N] `)))
    throw new MoleculeError('canceled', 'nothing was discarded')
}
