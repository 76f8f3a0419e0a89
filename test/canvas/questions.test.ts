/** Questions of an agent in a real browser: the composer answers them, and the chat keeps them. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Page } from 'playwright-core'
import { createHandWorker } from '../harness/hand-worker.ts'
import { type PlatformUnderTest, startPlatformFor } from '../harness/platform.ts'
import { checkAccessibility } from './axe.ts'
import { openPage } from './browser.ts'

const openChat = (t: TestContext, platform: PlatformUnderTest, id: string) =>
  openPage(t, platform, { hash: `#/w/${id}/chat` })

const boxOf = (page: Page) => page.getByRole('textbox', { name: 'Message Ada' })

async function say(page: Page, text: string): Promise<void> {
  await boxOf(page).fill(text)
  await boxOf(page).press('Enter')
}

test('CV-2 CV-9 a question of the agent is answered by typing into the composer', async (t) => {
  const platform = await startPlatformFor(t)
  const worker = await createHandWorker(platform, {})
  const page = await openChat(t, platform, worker.workspaceId)
  await say(page, 'write the guide')
  const turn = await worker.lease()
  await turn.ask('25 MiB or 32 MiB?')
  const card = page.getByRole('region', { name: 'Ada asks' })
  await card.getByText('25 MiB or 32 MiB?').waitFor()
  await checkAccessibility(t, page, 'chat with a question')
  const answer = page.getByRole('textbox', { name: 'Answer Ada' })
  await page.getByText('This answers the question of Ada.').waitFor()
  // The composer has the focus: a person only types.
  await page.keyboard.type('32 MiB')
  await page.getByRole('button', { name: 'Answer', exact: true }).waitFor()
  await page.keyboard.press('Enter')
  assert.equal(await worker.nextAnswer(), '32 MiB')
  await card.waitFor({ state: 'detached' })
  await answer.waitFor({ state: 'detached' })
  await turn.answer('Then 32 MiB it is.', { notice: 'The agent lost its own memory of this talk.' })
  await page.getByText('The agent lost its own memory of this talk.').waitFor()
  await page.getByText('Then 32 MiB it is.').waitFor()
})

test('CV-9 a turn that asks again asks at its own message, and each answer stands below its question, after a reload too', async (t) => {
  const platform = await startPlatformFor(t)
  const worker = await createHandWorker(platform, {})
  const page = await openChat(t, platform, worker.workspaceId)
  await say(page, 'write the guide')
  const turn = await worker.lease()
  const answer = async (question: string, text: string) => {
    await turn.ask(question)
    await page.getByText('This answers the question of Ada.').waitFor()
    await page.getByRole('region', { name: 'Ada asks' }).getByText(question).waitFor()
    await page.getByRole('textbox', { name: 'Answer Ada' }).fill(text)
    await page.keyboard.press('Enter')
    assert.equal(await worker.nextAnswer(), text)
  }
  await answer('Which size?', '32 MiB')
  await answer('Which colour?', 'red')
  await turn.ask('may I?', { tool: 'Bash', subject: 'make guide' })
  // A permission has its buttons at the message of the turn; the composer answers nothing.
  const asking = page.getByRole('article').filter({ hasText: 'write the guide' })
  await asking.getByRole('button', { name: 'Allow once' }).waitFor()
  const isWhole = async () => {
    for (const [question, text] of [
      ['Which size?', '32 MiB'],
      ['Which colour?', 'red'],
    ] as const) {
      const answered = page.getByRole('article').filter({ hasText: question })
      await answered.getByText(text, { exact: true }).waitFor()
      await answered.getByText('answered the question').waitFor()
    }
    assert.equal(await page.getByRole('region', { name: 'Ada asks' }).count(), 0)
    await boxOf(page).waitFor()
  }
  await isWhole()
  await asking.getByRole('button', { name: 'Allow once' }).click()
  await turn.answer('Here it is.')
  await page.getByText('Here it is.').waitFor()
  await page.reload()
  await page.getByText('Here it is.').waitFor()
  await isWhole()
})

test('CV-9 a text that was begun before a question came stays a message, until the person says that it is the answer', async (t) => {
  const platform = await startPlatformFor(t)
  const worker = await createHandWorker(platform, {})
  const page = await openChat(t, platform, worker.workspaceId)
  await say(page, 'write the guide')
  const turn = await worker.lease()
  await boxOf(page).fill('and then the index')
  await turn.ask('**25** MiB or 32 MiB?')
  await page.getByText('Ada waits for an answer.').waitFor()
  await page.getByRole('button', { name: 'Send', exact: true }).waitFor()
  await page.getByRole('button', { name: 'Answer the question' }).click()
  await page.getByRole('textbox', { name: 'Answer Ada' }).fill('25')
  await page.getByRole('button', { name: 'Answer', exact: true }).click()
  assert.equal(await worker.nextAnswer(), '25')
})
