import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { silentLog } from '../../../log.ts'
import { addToOutbox, openOutbox, outboxEvents } from './outbox.ts'

function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'molecule-outbox-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const file = (filename: string, text: string) => ({ filename, raw: Buffer.from(text).toString('base64') })

test('GW-17 PL-17 a file that is added to the outbox comes with the answer, under a safe name of its own', async (t) => {
  const workingDir = temporaryFolder(t)
  const turn = { workingDir, conversationId: 'c' }
  const folder = await openOutbox(workingDir, 'c')
  for (const name of ['plan.txt', 'Plan.txt', '../../out.txt']) await addToOutbox(file(name, name), turn)
  const events = await outboxEvents({ messageId: 'm' }, { folder, within: workingDir, log: silentLog })
  const files = events.flatMap((event) => (event.type === 'artifact' ? event.artifact.parts : []))
  assert.deepEqual(
    files.map(({ filename, raw = '' }) => [filename, Buffer.from(raw, 'base64').toString()]),
    [
      ['Plan-2.txt', 'Plan.txt'],
      ['out.txt', '../../out.txt'],
      ['plan.txt', 'plan.txt'],
    ],
  )
})

test('GW-17 PL-17 no file is added where there is no outbox, or a link in its place', async (t) => {
  const [workingDir, elsewhere] = [temporaryFolder(t), temporaryFolder(t)]
  const add = () => addToOutbox(file('a', 'a'), { workingDir, conversationId: 'c' })
  await assert.rejects(add(), { code: 'unsupported_operation' })
  const folder = await openOutbox(workingDir, 'c')
  rmSync(folder, { recursive: true })
  symlinkSync(elsewhere, folder)
  await assert.rejects(add(), { code: 'unsupported_operation' })
})
