/**
 * Asks the user for a permission that the agent waits for: once, always, or no. Any other answer is asked again, because a
 * typing mistake must neither allow nor deny. "Always" offers the same rules as the page: exactly this, or more.
 */
import type { ApiClient } from '../../client/api-client.ts'
import { allowAlways, type PendingAskView, type RuleChoiceView } from '../../client/needs.ts'
import { systemClock } from '../../clock.ts'
import { toMoleculeError } from '../../errors.ts'
import { printable, printableName, withoutControls } from '../../printable.ts'
import { sleep } from '../../wait.ts'
import type { ChatKeyboard } from './keyboard.ts'
import type { ChatScreen } from './screen.ts'

export interface PermissionPromptOptions {
  readonly client: Pick<ApiClient, 'all' | 'call'>
  readonly screen: Pick<ChatScreen, 'note'>
  readonly keyboard: Pick<ChatKeyboard, 'nextFresh' | 'leaving'>
}

/** Ends also when the turn is stopped, when the user leaves, and when the request was answered elsewhere. */
export async function askPermission(
  pending: PendingAskView,
  options: PermissionPromptOptions,
  stop: AbortSignal,
): Promise<void> {
  const { screen, keyboard, client } = options
  const { id, tool, subject } = pending
  screen.note(`${printableName(tool)}: ${printable(subject)}`)
  const answered = new AbortController()
  const ends = AbortSignal.any([stop, answered.signal, keyboard.leaving])
  void watchUntilAnswered(id, client, ends).then(() => answered.abort())
  const answer = await readAnswer(pending, options, ends)
  answered.abort()
  if (answer === undefined) {
    process.stdout.write('\n')
    return stop.aborted ? undefined : screen.note('answered elsewhere')
  }
  try {
    if (typeof answer === 'string') await client.call('POST /pending/{id}', { id, body: { decision: answer } })
    else await allowAlways(client, id, answer.pattern).then(() => screen.note(`from now on: ${answer.sentence}`))
    screen.note(answer === 'deny' ? 'denied' : 'allowed')
  } catch (thrown) {
    // Answered elsewhere, or too late: the turn and the chat continue.
    screen.note(toMoleculeError(thrown).message)
  }
}

type Answer = 'allow' | 'deny' | RuleChoiceView

/** Undefined when the signal aborts first. */
async function readAnswer(
  { would_cover: exact, would_cover_more: wider }: PendingAskView,
  { screen, keyboard }: PermissionPromptOptions,
  ends: AbortSignal,
): Promise<Answer | undefined> {
  const rules = [exact, wider].filter((rule) => rule !== undefined)
  const [keys, prompt] =
    rules.length === 0
      ? ['y or n', 'allow it? (y = once, n = no) ']
      : ['y, a or n', 'allow it? (y = once, a = always, n = no) ']
  for (;;) {
    const typed = (await keyboard.nextFresh(prompt, ends))?.trim()
    if (typed === undefined) return undefined
    if (/^y(es)?$/i.test(typed)) return 'allow'
    if (/^no?$/i.test(typed)) return 'deny'
    if (rules.length > 0 && /^a(lways)?$/i.test(typed)) {
      const rule = await chooseRule(rules, { screen, keyboard }, ends)
      if (rule !== 'back') return rule
    } else screen.note(`type ${keys}`)
  }
}

/** One rule needs no choice. `back` = the user would rather answer otherwise. */
async function chooseRule(
  rules: readonly RuleChoiceView[],
  { screen, keyboard }: Pick<PermissionPromptOptions, 'screen' | 'keyboard'>,
  ends: AbortSignal,
): Promise<RuleChoiceView | 'back' | undefined> {
  if (rules.length === 1) return rules[0]
  for (const [index, { sentence }] of rules.entries()) screen.note(`${index + 1}: ${withoutControls(sentence)}`)
  for (;;) {
    const typed = (await keyboard.nextFresh('always which? (1 or 2, Enter = back) ', ends))?.trim()
    if (typed === undefined) return undefined
    if (typed === '') return 'back'
    const rule = /^[12]$/.test(typed) ? rules[Number(typed) - 1] : undefined
    if (rule !== undefined) return rule
    screen.note('type 1 or 2, or press Enter')
  }
}

const POLL_MS = 2000

/** Resolves when the request is answered elsewhere, or when the signal aborts. A poll that fails counts as still open. */
async function watchUntilAnswered(id: string, client: Pick<ApiClient, 'all'>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleep(systemClock, POLL_MS, signal)
    const open = await client.all('GET /pending', 'pending').catch(() => [{ id }])
    if (!open.some((one) => one.id === id)) return
  }
}
