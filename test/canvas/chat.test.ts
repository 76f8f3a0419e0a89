/** The chat of a workspace in a real browser: what a person sends, sees, stops, retries and answers. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Page } from 'playwright-core'
import { CLAUDE_LOGGED_IN, createFakeProgram } from '../fakes/agents/fake-program.ts'
import { createHandWorker } from '../harness/hand-worker.ts'
import { type PlatformUnderTest, startPlatform, startPlatformFor } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'
import { checkAccessibility } from './axe.ts'
import { openPage, waitForValue } from './browser.ts'

const { path: claude } = createFakeProgram('claude')

const openChat = (t: TestContext, platform: PlatformUnderTest, id: string) =>
  openPage(t, platform, { hash: `#/w/${id}/chat` })

const boxOf = (page: Page) => page.getByRole('textbox', { name: 'Message Ada' })

async function say(page: Page, text: string): Promise<void> {
  await boxOf(page).fill(text)
  await boxOf(page).press('Enter')
}

/** The messages as a person reads them, without times that change. */
const shown = async (page: Page): Promise<string> =>
  ((await page.getByRole('region', { name: 'Messages' }).textContent()) ?? '').replaceAll(/\d+ (ms|s|min)\b/g, '#')

const stateOf = (page: Page, text: string) =>
  page.getByRole('article').filter({ hasText: text }).locator('[data-state]')

const create = async (platform: PlatformUnderTest, more: object): Promise<string> => {
  const { status, body } = await platform.request('POST', '/workspaces', { name: 'Ada', runtime: 'mock', ...more })
  assert.equal(status, 201, JSON.stringify(body))
  return body.id
}

test('CV-2 an answer streams as Markdown with its tools, and a reload shows the same', async (t) => {
  const platform = await startPlatformFor(t)
  const worker = await createHandWorker(platform, {})
  const page = await openChat(t, platform, worker.workspaceId)
  await page.getByText('Say hello to Ada').waitFor()
  await say(page, 'Is 0037 safe?')
  const turn = await worker.lease()
  await stateOf(page, 'Is 0037 safe?').getByText('running').waitFor()
  const tool = { type: 'tool', name: 'Bash', subject: 'npm run migrate -- --down' }
  await turn.append({ ...tool, state: 'started' })
  await page.getByRole('button', { name: 'runs npm run migrate -- --down' }).waitFor()
  await turn.append({ ...tool, state: 'finished' }, { type: 'text', delta: 'Yes, **down' })
  // Bold text that is still open is already bold, and its marks are not shown.
  await page.locator('strong', { hasText: 'down' }).waitFor()
  const rest =
    ' to 0038**.\n\n```sql\nalter table deliveries;\n```\n\n<b onclick="alert(1)">no</b> [a](javascript:alert(1))'
  await turn.append({ type: 'text', delta: rest })
  await page.locator('strong', { hasText: 'down to 0038' }).waitFor()
  const usage = { inputTokens: 1204, outputTokens: 310, costUsd: 0.03, durationMs: 6200 }
  await turn.answer(`Yes, **down${rest}`, { usage })
  await stateOf(page, 'Is 0037 safe?')
    .getByText(/^answered · .* · \$0\.03 · 1,514 tokens$/)
    .waitFor()
  assert.equal(await stateOf(page, 'Is 0037 safe?').getAttribute('title'), '1,204 tokens in, 310 out')
  await page.getByRole('button', { name: /^done npm run migrate/ }).waitFor()
  await page.locator('pre code span', { hasText: 'alter' }).first().waitFor()
  assert.equal(await page.locator('b').count(), 0, 'HTML of an agent became markup')
  assert.equal(await page.locator('a[href^=javascript]').count(), 0)
  const before = await shown(page)
  await page.reload()
  await stateOf(page, 'Is 0037 safe?').getByText('answered').waitFor()
  await page.locator('pre code span', { hasText: 'alter' }).first().waitFor()
  await waitForValue(() => shown(page), before)
})

test('CV-2 CV-5 the platform is killed with -9 while an answer streams: the page completes it without a reload', async (t) => {
  const platform = await startPlatformFor(t)
  const go = join(platform.dataDir, 'go')
  const cmd = `read line; printf 'first half of %s, ' "$line"; while [ ! -e ${go} ]; do sleep 0.05; done; printf 'second half'`
  const id = await platform.exec(cmd, { name: 'Ada' })
  const page = await openChat(t, platform, id)
  await page.evaluate('window.stays = true')
  await say(page, 'one')
  await page.getByText('first half of one,').waitFor()
  await platform.stop('SIGKILL')
  await say(page, 'two')
  // The text of a message that cannot be sent stays, and says so.
  await stateOf(page, 'two').getByText('not sent yet: The platform cannot be reached.').waitFor()
  await writeFile(go, '')
  const again = await startPlatform({ dataDir: platform.dataDir, args: ['--port', new URL(platform.url).port] })
  t.after(() => again.dispose())
  await page.getByText('first half of one, second half').waitFor()
  await page.getByText('first half of two, second half').waitFor()
  for (const text of ['one', 'two'])
    await page
      .locator('[data-state=answered]')
      .nth(text === 'one' ? 0 : 1)
      .waitFor()
  await stateOf(page, 'first half of one').getByText('interrupted once, run again').waitFor()
  assert.equal(await page.evaluate('window.stays'), true)
  await waitForValue(() => page.getByText('first half').count(), 2)
  const { body } = await again.request('GET', `/workspaces/${id}/conversations`)
  assert.deepEqual(
    body.conversations.map(({ messages }: { messages: number }) => messages),
    [2],
  )
})

test('CV-2 a message that was not sent is sent once after a reload, and a draft stays in its conversation', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await create(platform, {})
  const page = await openChat(t, platform, id)
  await page.route('**/a2a', (route) => route.abort())
  await say(page, 'do it once')
  await stateOf(page, 'do it once').getByText('not sent yet').waitFor()
  await boxOf(page).fill('half a thought')
  await boxOf(page).press('Shift+Enter')
  await boxOf(page).press('ArrowUp')
  await boxOf(page).press('Escape')
  await page.unroute('**/a2a')
  await page.reload()
  await page.getByText('echo: do it once').waitFor()
  await waitForValue(() => boxOf(page).inputValue(), 'half a thought\n')
  await waitForValue(() => page.getByRole('article').count(), 1)
})

test('CV-2 files come by paste, by drop and by the button, and the limits are said before anything is sent', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await create(platform, { runtime: 'exec', runtime_config: { cmd: 'cat', format: 'json' } })
  const page = await openChat(t, platform, id)
  await boxOf(page).waitFor()
  const give = (event: string, name: string, bytes: number) =>
    page.evaluate(
      `(() => {
        const data = new DataTransfer()
        data.items.add(new File(['x'.repeat(${bytes})], '${name}', { type: 'text/plain' }))
        const box = document.querySelector('textarea')
        const how = { bubbles: true, cancelable: true }
        if ('${event}' === 'paste') box.dispatchEvent(new ClipboardEvent('paste', { ...how, clipboardData: data }))
        else box.dispatchEvent(new DragEvent('${event}', { ...how, dataTransfer: data }))
      })()`,
    )
  await give('paste', 'pasted.txt', 5)
  await give('dragover', 'dropped.txt', 5)
  await page.getByText('Drop files to attach them. Up to 20 files, 6 MB together.').waitFor()
  await give('drop', 'dropped.txt', 5)
  await page
    .locator('input[type=file]')
    .setInputFiles({ name: 'chosen.txt', mimeType: 'text/plain', buffer: Buffer.from('x') })
  const attached = page.getByRole('list', { name: 'Attached files' })
  for (const name of ['pasted.txt', 'dropped.txt', 'chosen.txt']) await attached.getByText(name).waitFor()
  await give('drop', 'large.txt', 6_000_001)
  await page.getByRole('alert').getByText('The files of a message have at most 6 MB together').waitFor()
  await attached.getByRole('button', { name: 'Remove chosen.txt' }).click()
  await page.getByRole('button', { name: 'Send' }).click()
  await page.getByRole('list', { name: 'Files' }).getByText('dropped.txt').waitFor()
  const answer = page.getByText('"filename":"pasted.txt"')
  await answer.waitFor()
  assert.match((await answer.textContent()) ?? '', /"filename":"dropped.txt"/)
  assert.doesNotMatch((await answer.textContent()) ?? '', /chosen.txt/)
})

test('CV-2 files of an answer are shown and can be downloaded', async (t) => {
  const platform = await startPlatformFor(t)
  const worker = await createHandWorker(platform, {})
  const page = await openChat(t, platform, worker.workspaceId)
  await say(page, 'draw it')
  const turn = await worker.lease()
  const bytes = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
  const parts = [
    { text: 'The picture and its data' },
    { raw: bytes, mediaType: 'image/png', filename: 'dot.png' },
    { raw: Buffer.from('a,b').toString('base64'), mediaType: 'text/csv', filename: 'data.csv' },
  ]
  await turn.answer('Drawn.', { artifacts: [{ artifactId: 'drawn', name: 'drawn', parts }] })
  const picture = page.getByRole('img', { name: 'dot.png' })
  await waitForValue(() => picture.evaluate((image: { naturalWidth?: number }) => image.naturalWidth), 1)
  const download = page.waitForEvent('download')
  await page.getByRole('link', { name: /data.csv/ }).click()
  assert.equal((await download).suggestedFilename(), 'data.csv')
})

test('CV-2 PL-24 GW-9 a permission is allowed once, allowed always, and denied', async (t) => {
  const platform = await startPlatformFor(t, { env: CLAUDE_LOGGED_IN })
  const id = await create(platform, { runtime: 'claude-code', runtime_config: { bin: claude } })
  const page = await openChat(t, platform, id)
  const ask = async (command: string) => {
    await say(page, `!ask ${command}`)
    const card = page.getByRole('region', { name: 'Ada wants to run a command' })
    await card.getByText(command, { exact: true }).waitFor()
    await stateOf(page, `!ask ${command}`).getByText('waiting for you').waitFor()
    return card
  }
  await (await ask('make one')).getByRole('button', { name: 'Allow once' }).click()
  await page.getByText(/ran .*make one/).waitFor()
  const card = await ask('make two')
  await card.getByRole('button', { name: 'Always allow …' }).click()
  await checkAccessibility(t, page, 'chat with a permission')
  await card.getByText('Covers exactly this command.').waitFor()
  await card.getByRole('radio', { name: 'make two *' }).check()
  await card.getByText('Covers "make two", alone or followed by plain words.').waitFor()
  await card.getByRole('button', { name: 'Always allow this' }).click()
  await page.getByText(/ran .*make two/).waitFor()
  const { body } = await platform.request('GET', `/workspaces/${id}/rules`)
  assert.deepEqual(
    body.rules.map(({ pattern, scope }: { pattern: string; scope: string }) => [pattern, scope]),
    [['make two *', 'prefix']],
  )
  await say(page, '!ask make two again')
  await page.getByText(/ran .*make two again/).waitFor()
  await (await ask('make three')).getByRole('button', { name: 'Deny' }).click()
  await page.getByText(/was told/).waitFor()
})

test('CV-2 a running message is stopped, and run again once', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await create(platform, { runtime_config: { delay: '1h' } })
  const page = await openChat(t, platform, id)
  await say(page, 'start over')
  await say(page, 'and then this')
  await stateOf(page, 'and then this').getByText('queued · next').waitFor()
  await page.getByRole('button', { name: 'Cancel' }).click()
  const cancelled = stateOf(page, 'and then this').first()
  await cancelled.getByText(/^cancelled while it waited/).waitFor()
  await page.getByRole('button', { name: 'Stop', exact: true }).click()
  await stateOf(page, 'start over')
    .first()
    .getByText(/^stopped after/)
    .waitFor()
  await platform.request('PATCH', `/workspaces/${id}`, { runtime_config: { delay: null } })
  await stateOf(page, 'start over').first().getByRole('button', { name: 'Run again' }).dblclick()
  await page.getByText('echo: start over').waitFor()
  // What was cancelled in the queue is run again without a reload.
  await cancelled.getByRole('button', { name: 'Run again' }).click()
  await page.getByText('echo: and then this').waitFor()
  await cancelled.getByText('cancelled while it waited · was run again').waitFor()
  // After a reload too it is not offered to do nothing.
  await page.reload()
  await cancelled.getByText('was run again').waitFor()
  await waitForValue(() => page.getByRole('button', { name: 'Run again' }).count(), 0)
  const { body } = await platform.request('GET', `/workspaces/${id}/conversations`)
  assert.equal(body.conversations[0].messages, 4)
})

test('CV-2 a failed message says why and is run again once', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await create(platform, { max_attempts: 1, runtime_config: { fail: 'out of order', fail_times: '1' } })
  const page = await openChat(t, platform, id)
  await say(page, 'check the backups')
  const failed = stateOf(page, 'check the backups').first()
  await failed.getByText('failed:').waitFor()
  await failed.getByRole('button', { name: 'Why' }).click()
  await page.getByText('The program said: out of order.').waitFor()
  await page.getByText('A person may run it again or discard it.').waitFor()
  await checkAccessibility(t, page, 'chat with a failed message')
  await failed.getByRole('button', { name: 'Run again' }).dblclick()
  await page.getByText('echo: check the backups').waitFor()
  await failed.getByText('was run again').waitFor()
  const { body } = await platform.request('GET', `/workspaces/${id}/conversations`)
  assert.equal(body.conversations[0].messages, 2)
})

test('CV-2 a viewer reads along and sees no button that would be refused', async (t) => {
  const platform = await startPlatformFor(t, { env: CLAUDE_LOGGED_IN })
  const id = await create(platform, { runtime: 'claude-code', runtime_config: { bin: claude } })
  const page = await openChat(t, platform, id)
  await say(page, '!ask make test')
  await page.getByRole('button', { name: 'Allow once' }).waitFor()
  const viewer = await openPage(t, platform, { role: 'viewer', hash: `#/w/${id}/chat` })
  await viewer.getByRole('region', { name: 'Ada wants to run a command' }).waitFor()
  await viewer.getByText('You read along.').waitFor()
  for (const name of ['Allow once', 'Always allow …', 'Deny', 'Stop', 'Send', 'New conversation']) {
    assert.equal(await viewer.getByRole('button', { name, exact: true }).count(), 0, name)
  }
  assert.equal(await viewer.getByRole('textbox').count(), 0)
})

test('CV-2 conversations are listed and searched, and messages of agents are apart from those of people', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await create(platform, {})
  const conductor = await create(platform, { name: 'Conductor', parent_id: id })
  const page = await openChat(t, platform, id)
  await say(page, 'the first matter')
  await page.getByText('echo: the first matter').waitFor()
  await page.getByRole('button', { name: 'New conversation' }).click()
  await page.getByText('Say hello to Ada').waitFor()
  await say(page, 'the second matter')
  await page.getByText('echo: the second matter').waitFor()
  assert.equal(await page.getByText('echo: the first matter').count(), 0)
  const { body: token } = await platform.request('POST', '/tokens', {
    name: 'c',
    role: 'workspace',
    workspace_id: conductor,
  })
  const params = { message: { messageId: 'peer-1', role: 'ROLE_USER', parts: [{ text: 'run the full suite' }] } }
  const sent = await fetch(`${platform.url}/workspaces/${id}/a2a`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token.token}`, 'Content-Type': 'application/json', 'A2A-Version': '1.0' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params }),
  })
  assert.equal(sent.status, 200)
  const line = page.getByRole('button', { name: /Conductor asked: run the full suite/ })
  await line.waitFor()
  await page.getByRole('button', { name: 'Conversation: the second matter' }).click()
  await page.getByRole('region', { name: 'Agents, schedules and programs' }).getByText('run the full suite').waitFor()
  await checkAccessibility(t, page, 'list of conversations')
  await page.getByRole('searchbox').fill('FIRST')
  await page.getByRole('button', { name: /the second matter/ }).waitFor({ state: 'detached' })
  await page
    .getByRole('list', { name: 'Found messages' })
    .getByRole('button', { name: /the first matter/ })
    .click()
  await page.getByText('echo: the first matter').waitFor()
  await line.click()
  await page.getByText('echo: run the full suite').waitFor()
  await page.getByText('This conversation belongs to another sender.').waitFor()
})

test('CV-2 CV-5 a long conversation is read in pages, with a bounded number of messages on the page', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await create(platform, { runtime_config: { reply: 'A.\n\n%s\n\nB.' } })
  const total = 260
  const send = (n: number) =>
    platform.rpc(id, 'SendMessage', {
      message: { messageId: `m-${n}`, contextId: 'long', role: 'ROLE_USER', parts: [{ text: `number ${n}` }] },
      configuration: { returnImmediately: true },
    })
  for (let n = 1; n <= total; n++) await send(n)
  const page = await openChat(t, platform, id)
  const list = page.getByRole('region', { name: 'Messages' })
  await list.getByText(`number ${total}`, { exact: true }).first().waitFor()
  const top = list.getByText('number 1', { exact: true }).first()
  let most = 0
  await waitUntil(async () => {
    await list.evaluate((element) => element.scrollTo(0, 0))
    most = Math.max(most, await page.getByRole('article').count())
    return (await top.count()) > 0
  }, 'the first message is on the page')
  assert.ok(most <= 150, String(most))
  await send(total + 1)
  await page.getByRole('button', { name: 'New messages' }).click()
  await list
    .getByText(`number ${total + 1}`, { exact: true })
    .last()
    .waitFor()
  assert.ok((await page.getByRole('article').count()) <= 150)
})
