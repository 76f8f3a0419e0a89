/** What a person reads in the chat: Markdown as agents write it, partial answers, times, and what the page says of an agent. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import { createHandWorker } from '../harness/hand-worker.ts'
import { type PlatformUnderTest, startPlatformFor } from '../harness/platform.ts'
import { checkAccessibility } from './axe.ts'
import { openPage, waitForValue } from './browser.ts'

const openChat = (t: TestContext, platform: PlatformUnderTest, id: string) =>
  openPage(t, platform, { hash: `#/w/${id}/chat` })

async function say(page: Page, text: string): Promise<void> {
  const box = page.getByRole('textbox', { name: 'Message Ada' })
  await box.fill(text)
  await box.press('Enter')
}

/** Of an element that is there, or will be. */
const styleOf = (element: Locator, name: 'direction' | 'textAlign') =>
  element.evaluate((each, of) => each.ownerDocument.defaultView?.getComputedStyle(each)[of], name)

const ANSWER = [
  'First line\nsecond line<br>third &amp; last &lt;tag&gt; &mdash; `&amp;`',
  '- [x] tests pass\n  on three systems\n- [ ] review **open**\n- no task',
  '| left | middle | right |\n|:-----|:------:|------:|\n| a<br>b | c | 1,204 |',
  'Before\n\n<br>\n\nAfter, f&uuml;r Ana',
  '[a link](https://example.test/?a=1&amp;b=2)',
  'שלום עולם, this is right to left',
].join('\n\n')

test('CV-8 an answer keeps its lines, and has task lists, aligned tables, entities and right-to-left text', async (t) => {
  const platform = await startPlatformFor(t)
  const worker = await createHandWorker(platform, {})
  const page = await openChat(t, platform, worker.workspaceId)
  await say(page, 'مرحبا: show it')
  await (await worker.lease()).answer(ANSWER)
  const lines = page.locator('article p', { hasText: 'First line' })
  await waitForValue(() => lines.allInnerTexts(), ['First line\nsecond line\nthird & last <tag> — &amp;'])
  assert.equal(await page.getByRole('checkbox', { name: 'done', exact: true }).isChecked(), true)
  assert.equal(await page.getByRole('checkbox', { name: 'not done' }).isChecked(), false)
  assert.equal(await page.getByText('[x]').count(), 0)
  // The boxes stand at the left of the items, so that all lines of an item begin below each other.
  const spaces = await page
    .locator('li input')
    .evaluateAll((boxes) =>
      boxes.map((box) => (box.closest('li')?.getBoundingClientRect().left ?? 0) - box.getBoundingClientRect().right),
    )
  for (const space of spaces) assert.ok(space > 0 && space < 12, String(space))
  assert.equal(await page.getByText('<br>').count(), 0)
  await page.getByText('After, für Ana').waitFor()
  const cells = page.getByRole('cell')
  await waitForValue(() => cells.allInnerTexts(), ['a\nb', 'c', '1,204'])
  for (const [index, align] of ['left', 'center', 'right'].entries())
    assert.equal(await styleOf(cells.nth(index), 'textAlign'), align)
  assert.equal(await page.getByRole('link', { name: 'a link' }).getAttribute('href'), 'https://example.test/?a=1&b=2')
  const directionOf = (text: string) => styleOf(page.locator('[dir]', { hasText: text }).last(), 'direction')
  await waitForValue(() => directionOf('this is right to left'), 'rtl')
  await waitForValue(() => directionOf('show it'), 'rtl')
  await waitForValue(() => directionOf('second line'), 'ltr')
  await checkAccessibility(t, page, 'an answer with a task list and a table')
})

test('CV-8 entities are the characters that they name, and what is none stays as it is written', async (t) => {
  const platform = await startPlatformFor(t)
  const worker = await createHandWorker(platform, {})
  const page = await openChat(t, platform, worker.workspaceId)
  await say(page, 'show them')
  const unknown = 'AT&T; &unknown; &nothing; &#0; &#x202e; &#xd800; &#9999999; a & b &constructor; &semi'
  const lines = [
    '1: a &amp; b &lt;c&gt; &quot;d&quot; &#39;e&#x27; &mdash; &#8217; &semi;',
    '2: &frac34;&Auml;rger, &eacute;t&eacute;, Stra&szlig;e &times; 2, &theta; &isin; &Rscr;, &forall;x &ne; &NotEqualTilde; &rarr; &check;',
    // Once: what comes out is not read again.
    '3: &amp;lt; &#38;lt; &lt;script&gt;',
    `4: ${unknown}`,
  ]
  await (await worker.lease()).answer(lines.join('\n'))
  const shown = page.locator('article p', { hasText: '1: a' })
  const expected = [
    `1: a & b <c> "d" 'e' — ’ ;`,
    '2: ¾Ärger, été, Straße × 2, θ ∈ ℛ, ∀x ≠ ≂̸ → ✓',
    '3: &lt; &lt; <script>',
    `4: ${unknown}`,
  ]
  await waitForValue(() => shown.allInnerTexts(), [expected.join('\n')])
})

test('CV-8 what people write has its own direction in lists, titles, memories and fields too', async (t) => {
  const platform = await startPlatformFor(t)
  const { body: made } = await platform.request('POST', '/workspaces', { name: 'Ada', runtime: 'mock' })
  const text = 'שלום עולם, in 2 words'
  await platform.send(made.id, text)
  await platform.request('POST', `/workspaces/${made.id}/memories`, { text, namespace: 'workspace', kind: 'memory' })
  const page = await openChat(t, platform, made.id)
  const isRightToLeft = (element: Locator) => waitForValue(() => styleOf(element, 'direction'), 'rtl')
  /** The innermost element with the text. */
  const innermost = (place: Locator) => place.getByText(text, { exact: true }).last()
  await page.getByRole('button', { name: `Conversation: ${text}` }).click()
  await page.getByRole('searchbox').fill('שלום')
  await isRightToLeft(page.getByRole('searchbox'))
  await page.getByRole('searchbox').fill('')
  await page.getByText('1 message').waitFor()
  await isRightToLeft(innermost(page.getByRole('region', { name: 'People' })))
  await page.getByRole('tab', { name: 'Activity' }).click()
  await isRightToLeft(innermost(page.getByRole('heading')))
  await page.getByRole('tab', { name: 'Memory' }).click()
  // The tab before may still be there while the program of this one is loaded.
  await isRightToLeft(innermost(page.getByRole('tabpanel', { name: 'Memory' }).getByRole('listitem')))
  await page.getByLabel('Add a memory').fill(text)
  await isRightToLeft(page.getByLabel('Add a memory'))
})

test('CV-8 CV-2 Stop keeps what was written, marked as partial, in the chat, after a reload and in the activity', async (t) => {
  const platform = await startPlatformFor(t)
  const worker = await createHandWorker(platform, {})
  const page = await openChat(t, platform, worker.workspaceId)
  await say(page, 'why is it slow?')
  const turn = await worker.lease()
  await turn.append({ type: 'tool', name: 'Bash', subject: 'make test', state: 'started' })
  await turn.append({ type: 'text', delta: 'The index is missing, **because' })
  await page.getByText('The index is missing,').waitFor()
  await page.getByRole('button', { name: 'Stop', exact: true }).click()
  const isPartial = async () => {
    await page.getByText('A partial answer: it was stopped here.').waitFor()
    await page.getByText('The index is missing,').waitFor()
    await page.getByText(/^stopped after/).waitFor()
  }
  await isPartial()
  await turn.settle({ type: 'stopped' })
  await page.reload()
  await isPartial()
  await checkAccessibility(t, page, 'a partial answer')
  await page.getByRole('tab', { name: 'Activity' }).click()
  await page.getByText('Wrote, before it was stopped').waitFor()
  const steps = page.getByRole('list', { name: 'Steps' })
  await steps.getByText('The index is missing,').waitFor()
  await steps.getByRole('listitem').filter({ hasText: 'make test' }).getByText('did not end').waitFor()
  assert.equal(await steps.getByRole('listitem').last().getByText('failed').count(), 0, 'Stop is no failure')
})

test('CV-2 only a workspace that asks is said to ask before it acts', async (t) => {
  const platform = await startPlatformFor(t)
  const shell = await platform.exec('cat', { name: 'Ada' })
  const page = await openChat(t, platform, shell)
  await page.getByText('Say hello to Ada').waitFor()
  await page.getByText(/^Ada works in .*[^.]\.$/).waitFor()
  assert.equal(await page.getByText('asks before it acts').count(), 0)
})

test('CV-2 the page names no folder of the platform for an agent on another machine', async (t) => {
  const platform = await startPlatformFor(t)
  const worker = await createHandWorker(platform, {})
  const page = await openChat(t, platform, worker.workspaceId)
  await page.getByText('Say hello to Ada').waitFor()
  assert.equal(await page.getByText('works in').count(), 0)
  await say(page, 'run the tests')
  await (await worker.lease()).ask('may I?', { tool: 'Bash', subject: 'make test' })
  const card = page.getByRole('region', { name: 'Ada wants to run a command' })
  await card.getByText('make test').waitFor()
  assert.doesNotMatch((await card.textContent()) ?? '', /workspaces/)
})

test('CV-3 the settings of an agent that cannot ask do not say that it asks', async (t) => {
  const platform = await startPlatformFor(t)
  const made = async (name: string, more: object) =>
    (await platform.request('POST', '/workspaces', { name, ...more })).body.id
  const claw = await made('Claw', { runtime: 'openclaw' })
  const once = await made('Once', { runtime: 'claude-code', runtime_config: { mode: 'oneshot' } })
  const page = await openPage(t, platform, { hash: `#/w/${once}/config` })
  await page.getByText('Acts within its tools').waitFor()
  await page.evaluate(`location.assign('#/w/${claw}/config')`)
  await page.getByRole('heading', { name: 'Folder' }).waitFor()
  await page.getByRole('complementary', { name: 'Claw' }).waitFor()
  assert.equal(await page.getByText('Asks before it acts').count(), 0)
})

test('CV-2 the time of a tool is without the wait for a person, while it runs and after a reload', async (t) => {
  const platform = await startPlatformFor(t)
  const worker = await createHandWorker(platform, {})
  const page = await openChat(t, platform, worker.workspaceId)
  await say(page, 'run the tests')
  const turn = await worker.lease()
  const tool = { type: 'tool', name: 'Bash', subject: 'make test' }
  const begunMs = Date.now()
  await turn.append({ ...tool, state: 'started' })
  await turn.ask('may I?', { tool: 'Bash', subject: 'make test' })
  const card = page.getByRole('region', { name: 'Ada wants to run a command' })
  await card.waitFor()
  const shownMs = Date.now()
  await page.waitForTimeout(3000)
  const waitedMs = Date.now() - shownMs
  await card.getByRole('button', { name: 'Allow once' }).click()
  await worker.nextAnswer()
  await turn.append({ ...tool, state: 'finished' })
  // The page rounds to a tenth of a second.
  const workedMsMax = Date.now() - begunMs - waitedMs + 100
  const line = page.getByRole('button', { name: /^done make test/ })
  const time = async () =>
    Number.parseFloat(/make test\s*([\d.]+) s/.exec((await line.textContent()) ?? '')?.[1] ?? '0')
  await line.waitFor()
  assert.ok((await time()) * 1000 <= workedMsMax, (await line.textContent()) ?? '')
  await turn.answer('All pass.')
  await page.getByText('All pass.').waitFor()
  await page.reload()
  await line.waitFor()
  assert.ok((await time()) * 1000 <= workedMsMax, (await line.textContent()) ?? '')
})
