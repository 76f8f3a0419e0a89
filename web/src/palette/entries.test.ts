import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeWorkspace } from '../../../test/fakes/workspace-view.ts'
import { matchedPart } from '../ui/text/matched-part.ts'
import { findEntries, makeEntries } from './entries.ts'

const noop = () => undefined
const entry = (title: string) => ({ id: title, title, hint: '', run: noop })

test('CV-5 the palette finds all words in any order, and the beginning of a title counts most', () => {
  const entries = ['Prepare Ada', 'Restart Ada', 'Reviewer', 'Store of reviews'].map(entry)
  const titles = (query: string) => findEntries(entries, query).map(({ title }) => title)
  assert.deepEqual(titles('re'), ['Restart Ada', 'Reviewer', 'Store of reviews', 'Prepare Ada'])
  assert.deepEqual(titles('ada re'), ['Prepare Ada', 'Restart Ada'])
  assert.deepEqual(titles('xyz'), [])
  assert.equal(titles('').length, 4)
  assert.equal(
    findEntries(
      Array.from({ length: 50 }, (_, index) => entry(`w${index}`)),
      'w',
    ).length,
    12,
  )
})

test('CV-5 the matched part of a title', () => {
  assert.deepEqual(matchedPart('Reviewer', 'RE'), ['', 'Re', 'viewer'])
  assert.deepEqual(matchedPart('Restart Ada', 'ada re'), ['Restart Ada', '', ''])
})

test('CV-5 PL-9 the palette offers only what the session may do', () => {
  const workspaces = [
    fakeWorkspace('ws_1', { name: 'Ada' }),
    fakeWorkspace('ws_2', { name: 'Scout', status: 'paused' }),
  ]
  const titles = (allowed: readonly string[]) =>
    makeEntries(workspaces, {
      may: (action) => allowed.includes(action),
      open: noop,
      openView: noop,
      restart: noop,
      pause: noop,
      resume: noop,
      all: [],
    }).map(({ title }) => title)
  assert.deepEqual(titles([]), ['Ada', 'Scout'])
  assert.deepEqual(titles(['workspace.pause']), ['Ada', 'Scout', 'Pause Ada', 'Resume Scout'])
  assert.deepEqual(titles(['workspace.create']), ['Ada', 'Scout', 'New workspace'])
})
