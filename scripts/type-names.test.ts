/** Tests the check of type names on small samples and runs it on the repository itself. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { readSources } from './layers.ts'
import { checkTypeNames } from './type-names.ts'

const check = (sources: Record<string, string>) => checkTypeNames(new Map(Object.entries(sources)))

describe('checking the names of exported types', () => {
  it('reports a name that two files export, with both files', () => {
    const problems = check({ 'a.ts': 'export interface Room {}', 'b.ts': 'export type Room = string' })
    assert.deepEqual(problems, ['Room is exported by a.ts and b.ts: rename one'])
  })
  it('allows the same name for types that are not exported', () => {
    assert.deepEqual(check({ 'a.ts': 'export interface Room {}', 'b.ts': 'interface Room {}' }), [])
  })
  it('does not count a re-export as a second declaration', () => {
    assert.deepEqual(check({ 'a.ts': 'export interface Room {}', 'b.ts': `export type { Room } from './a.ts'` }), [])
  })
  it('allows a function of the same name', () => {
    assert.deepEqual(check({ 'a.ts': 'export interface room {}', 'b.ts': 'export function room() {}' }), [])
  })
  it('passes on this repository', () => {
    assert.deepEqual(checkTypeNames(readSources(join(import.meta.dirname, '..'))), [])
  })
})
