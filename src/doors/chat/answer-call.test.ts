import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from '../../log.ts'
import { answerCall } from './answer-call.ts'

test('GW-9 a button or a command that fails is answered, logged without the rest of its error, and never rejects', async () => {
  const lines: string[] = []
  const log = createLog('info', { write: (line: string) => void lines.push(line) })
  const answers: string[] = []
  const fail = async () => {
    throw Object.assign(new Error('the store is away'), { url: 'https://service/secret' })
  }
  await answerCall({ answer: async (text) => void answers.push(text) }, fail, log)
  assert.deepEqual(answers, ['That failed unexpectedly. Try again.'])
  assert.match(lines.join(), /the store is away/)
  assert.doesNotMatch(lines.join(), /secret/)
  await answerCall({ answer: fail }, fail, log)
})
