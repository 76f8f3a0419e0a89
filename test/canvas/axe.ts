/** Runs `axe-core` on a page of a test. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { TestContext } from 'node:test'
import type { Page } from 'playwright-core'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Fails when it finds a serious issue. The browser's own evaluation is not subject to the page's policy, which allows no script from elsewhere. */
export async function checkAccessibility(t: TestContext, page: Page, view: string): Promise<void> {
  await page.evaluate(AXE)
  const found = (await page.evaluate('axe.run(document, { resultTypes: ["violations"] })')) as {
    violations: { id: string; impact: string; help: string; nodes: { html: string; failureSummary: string }[] }[]
  }
  const serious = found.violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
  for (const { id, nodes } of serious) t.diagnostic(`${view}: ${id}: ${nodes[0]?.html} ${nodes[0]?.failureSummary}`)
  assert.deepEqual(
    serious.map(({ id, help }) => `${view}: ${id}: ${help}`),
    [],
  )
}
