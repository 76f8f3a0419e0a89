import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MoleculeError } from '../../../errors.ts'
import type { Log } from '../../../log.ts'
import { errorAnswer, logFailure } from './errors.ts'

test('PL-15 an error has its status, code, message, hint and id', () => {
  assert.deepEqual(errorAnswer(new MoleculeError('forbidden', 'no'), 'req_1'), {
    status: 403,
    headers: {},
    body: {
      error: { code: 'forbidden', message: 'no', hint: 'ask an admin for a token with the right role', id: 'req_1' },
    },
  })
  assert.deepEqual(errorAnswer(new MoleculeError('not_found', 'nothing is here'), 'req_1'), {
    status: 404,
    headers: {},
    body: { error: { code: 'not_found', message: 'nothing is here', id: 'req_1' } },
  })
})

test('PL-15 an error of a file lists its problems', () => {
  const problems = [{ path: 'name', message: 'is empty' }]
  const { body } = errorAnswer(new MoleculeError('invalid_request', 'bad', { details: { problems } }), 'req_1')
  assert.deepEqual(body, { error: { code: 'invalid_request', message: 'bad', problems, id: 'req_1' } })
  const other = errorAnswer(new MoleculeError('invalid_request', 'bad', { details: { problems: 'many' } }), 'req_1')
  assert.deepEqual(other.body, { error: { code: 'invalid_request', message: 'bad', id: 'req_1' } })
})

test('PL-15 a defect shows a sentence with the id and nothing internal', () => {
  const { status, body, headers } = errorAnswer(new MoleculeError('internal', 'at /inside/x.ts:3'), 'req_1')
  assert.deepEqual([status, headers], [500, {}])
  assert.deepEqual(body, {
    error: {
      code: 'internal',
      message: 'an internal error; the log has it under this id (req_1)',
      hint: 'find the id in molecule.log in the data folder',
      id: 'req_1',
    },
  })
})

test('PL-9 the headers of an error say how to authenticate and when to retry, in whole seconds and at least one', () => {
  const headers = (error: MoleculeError) => errorAnswer(error, 'req_1').headers
  assert.deepEqual(headers(new MoleculeError('unauthenticated', 'who')), {
    'WWW-Authenticate': 'Bearer realm="molecule"',
  })
  const after = (retryAfterMs: unknown) =>
    headers(new MoleculeError('queue_full', 'full', { details: { retryAfterMs } }))?.['Retry-After']
  assert.deepEqual([0, 1, 1000, 1001, 60_000, 'soon'].map(after), ['1', '1', '1', '2', '60', undefined])
  assert.deepEqual(headers(new MoleculeError('store_unavailable', 'gone')), { 'Retry-After': '1' })
})

function logged(error: MoleculeError, url = '/a?b=c') {
  const lines: unknown[] = []
  const at = (level: string) => (fields: object, message: string) => void lines.push([level, fields, message])
  const log: Log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  logFailure(log, error, { request: { method: 'GET', url }, requestId: 'req_1' })
  return lines
}

test('RE-7 a refusal is one line, a defect is logged whole, a disconnect is for debugging', () => {
  const fields = { requestId: 'req_1', method: 'GET', path: '/a' }
  assert.deepEqual(logged(new MoleculeError('not_found', 'nothing')), [
    ['info', { ...fields, code: 'not_found', reason: 'nothing' }, 'request refused'],
  ])
  const defect = new MoleculeError('internal', 'broken')
  assert.deepEqual(logged(defect), [['error', { ...fields, code: 'internal', err: defect }, 'request failed']])
  assert.deepEqual(logged(new MoleculeError('canceled', 'gone')), [['debug', { ...fields, code: 'canceled' }, 'gone']])
})

test('RE-7 a logged path has at most 200 characters and a reason 500', () => {
  const [line] = logged(new MoleculeError('not_found', `a${'b'.repeat(500)}`), `/${'x'.repeat(200)}`) as [
    [string, { path: string; reason: string }],
  ]
  assert.deepEqual([line[1].path, line[1].reason], [`/${'x'.repeat(199)}...`, `a${'b'.repeat(499)}...`])
  const [whole] = logged(new MoleculeError('not_found', 'b'.repeat(500)), `/${'x'.repeat(199)}`) as [
    [string, { path: string; reason: string }],
  ]
  assert.deepEqual([whole[1].path, whole[1].reason], [`/${'x'.repeat(199)}`, 'b'.repeat(500)])
})
