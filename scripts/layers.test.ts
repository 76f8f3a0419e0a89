/**
 * Tests the import check on samples: a violation of each rule, and a clean sample for each import that is allowed. The
 * table is a small sample, so that a change of the real table breaks no test here.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { layerTable } from '../layers.mjs'
import { checkLayers, type LayerTable, readSources } from './layers.ts'

const TABLE: LayerTable = {
  leaves: ['src/errors.ts', 'src/ids.ts'],
  layers: {
    'src/words': { mayImport: [] },
    'src/post': { mayImport: ['src/words'] },
    'src/engine': { mayImport: ['src/words', 'src/post/seam.ts'] },
    'src/doors': { mayImport: ['src/words'], engines: ['src/doors/chat'] },
    'src/cli': { mayImport: 'everything' },
  },
  outside: ['test', 'scripts'],
  loaders: ['src/cli/loader.ts'],
}

/** Each violation as `file:line rule`. */
function check(sources: Record<string, string>): string[] {
  return checkLayers(new Map(Object.entries(sources)), TABLE).map(({ file, line, rule }) => `${file}:${line} ${rule}`)
}

function messageOf(sources: Record<string, string>): string {
  const violations = checkLayers(new Map(Object.entries(sources)), TABLE)
  assert.equal(violations.length, 1)
  return violations[0]?.message ?? ''
}

describe('a clean tree passes', () => {
  it('lets a layer import its own files, leaves, listed layers and packages', () => {
    const source = `import './other.ts'\nimport '../errors.ts'\nimport '../words/a.ts'\nimport 'node:fs'\nimport 'zod'\n`
    assert.deepEqual(check({ 'src/post/a.ts': source }), [])
  })
  it('lets a layer import a listed file of another layer', () => {
    assert.deepEqual(check({ 'src/engine/a.ts': `import type { Seam } from '../post/seam.ts'` }), [])
  })
  it('lets a layer marked everything import everything', () => {
    assert.deepEqual(check({ 'src/cli/wire.ts': `import '../doors/http/http.ts'\nimport '../post/post.ts'` }), [])
  })
  it('lets sibling folders import their engine and the files of their layer', () => {
    assert.deepEqual(check({ 'src/doors/discord/a.ts': `import '../chat/chat.ts'\nimport '../door.ts'` }), [])
  })
  it('lets the folders of a room import each other in one direction, and tests in every direction', () => {
    const sources = {
      'src/post/post.ts': `import './sort/a.ts'\nimport './carry/b.ts'`,
      'src/post/sort/a.ts': `import '../carry/b.ts'\nimport '../seam.ts'`,
      'src/post/carry/b.ts': `import '../seam.ts'`,
      'src/post/carry/b.test.ts': `import '../sort/a.ts'`,
    }
    assert.deepEqual(check(sources), [])
  })
  it('lets a file of the layer itself import every sibling folder', () => {
    assert.deepEqual(check({ 'src/doors/doors.ts': `import './http/http.ts'\nimport './discord/discord.ts'` }), [])
  })
  it('lets tests and scripts import anything, also by a computed name', () => {
    const source = `import '../src/post/a.ts'\nimport '../src/errors.ts'\nawait import(name)`
    assert.deepEqual(check({ 'test/a.test.ts': source, 'scripts/a.ts': source }), [])
    assert.deepEqual(check({ 'src/words/a.test.ts': `import '../post/a.ts'` }), [])
  })
  it('does not take a comment or a string for an import', () => {
    assert.deepEqual(
      check({ 'src/words/a.ts': `// import '../post/a.ts'\nexport const text = "import '../post/a.ts'"` }),
      [],
    )
  })
})

describe('each rule reports a violation with its file and line', () => {
  it('unknown-layer: a file outside all layers', () => {
    assert.deepEqual(check({ 'src/attic/a.ts': '', 'src/loose.ts': '' }), [
      'src/attic/a.ts:1 unknown-layer',
      'src/loose.ts:1 unknown-layer',
    ])
  })
  it('forbidden-layer: a static import, a type, a re-export, a dynamic import and an inline type', () => {
    const source = [
      `import { a } from '../post/a.ts'`,
      `import type { B } from '../post/a.ts'`,
      `export { c } from '../post/a.ts'`,
      `export * from '../post/a.ts'`,
      `await import('../post/a.ts')`,
      'await import(`../post/a.ts`)',
      `export type D = import('../post/a.ts').D`,
    ]
    const expected = source.map((_, index) => `src/words/a.ts:${index + 1} forbidden-layer`)
    assert.deepEqual(check({ 'src/words/a.ts': source.join('\n') }), expected)
  })
  it('forbidden-layer: a file of a layer of which only the seam is listed', () => {
    assert.deepEqual(check({ 'src/engine/a.ts': `\nimport '../post/insides.ts'` }), [
      'src/engine/a.ts:2 forbidden-layer',
    ])
  })
  it('forbidden-layer: a test or a script, even from a layer marked everything', () => {
    assert.deepEqual(check({ 'src/cli/a.ts': `import '../../test/fakes/fake.ts'\nimport '../words/b.test.ts'` }), [
      'src/cli/a.ts:1 forbidden-layer',
      'src/cli/a.ts:2 forbidden-layer',
    ])
  })
  it('sibling: one door importing another, and the engine importing a door', () => {
    assert.deepEqual(check({ 'src/doors/discord/a.ts': `import '../http/b.ts'` }), ['src/doors/discord/a.ts:1 sibling'])
    assert.deepEqual(check({ 'src/doors/chat/a.ts': `import '../http/b.ts'` }), ['src/doors/chat/a.ts:1 sibling'])
  })
  it('leaf: a leaf importing a layer or another leaf', () => {
    assert.deepEqual(check({ 'src/ids.ts': `import './words/a.ts'\nimport './errors.ts'` }), [
      'src/ids.ts:1 leaf',
      'src/ids.ts:2 leaf',
    ])
  })
  it('cycle: three files in a circle, one of them by a type import', () => {
    const sources = {
      'src/words/a.ts': `import './b.ts'`,
      'src/words/b.ts': `\nimport type { C } from './c.ts'`,
      'src/words/c.ts': `\n\nawait import('./a.ts')`,
    }
    assert.deepEqual(check(sources), ['src/words/c.ts:3 cycle'])
    assert.match(messageOf(sources), /src\/words\/a\.ts -> src\/words\/b\.ts -> src\/words\/c\.ts -> src\/words\/a\.ts/)
  })
  it('cycle: a file that imports itself', () => {
    assert.deepEqual(check({ 'src/words/a.ts': `import './a.ts'` }), ['src/words/a.ts:1 cycle'])
  })
  it('folder-circle: two folders of a room that import each other, though their files form no cycle', () => {
    const sources = {
      'src/post/sort/a.ts': `import '../carry/b.ts'`,
      'src/post/carry/b.ts': '',
      'src/post/carry/c.ts': `\nimport type { D } from '../sort/d.ts'`,
      'src/post/sort/d.ts': '',
    }
    assert.deepEqual(check(sources), ['src/post/carry/c.ts:2 folder-circle'])
    assert.match(
      messageOf(sources),
      /src\/post\/sort -> src\/post\/carry \(in src\/post\/sort\/a\.ts\) -> src\/post\/sort \(in src\/post\/carry\/c\.ts\)/,
    )
  })
  it('folder-circle: by a detour, also by a file beside the folders, and between folders of a folder', () => {
    assert.deepEqual(
      check({
        'src/post/post.ts': `import './sort/a.ts'`,
        'src/post/sort/a.ts': '',
        'src/post/sort/b.ts': `import '../carry/c.ts'`,
        'src/post/carry/c.ts': `import '../post.ts'`,
        'src/words/in/deep/a.ts': `import '../wide/b.ts'`,
        'src/words/in/wide/b.ts': '',
        'src/words/in/wide/c.ts': `import '../deep/d.ts'`,
        'src/words/in/deep/d.ts': '',
      }),
      ['src/post/carry/c.ts:1 folder-circle', 'src/words/in/wide/c.ts:1 folder-circle'],
    )
  })
  it('computed-import: a name that is computed at run time', () => {
    assert.deepEqual(check({ 'src/cli/a.ts': 'await import(name)\nawait import(`./${name}.ts`)' }), [
      'src/cli/a.ts:1 computed-import',
      'src/cli/a.ts:2 computed-import',
    ])
  })
  it('computed-import: allowed in a listed loader', () => {
    assert.deepEqual(check({ 'src/cli/loader.ts': 'await import(name)' }), [])
  })
  it('outside-repo: a path that leaves the repository, also from a test', () => {
    assert.deepEqual(
      check({ 'test/a.test.ts': `import '../../elsewhere/a.ts'\nimport '/opt/a.ts'\nimport 'file:///a.ts'` }),
      ['test/a.test.ts:1 outside-repo', 'test/a.test.ts:2 outside-repo', 'test/a.test.ts:3 outside-repo'],
    )
  })
  it('extension: a path without .ts', () => {
    assert.deepEqual(check({ 'src/words/a.ts': `import './b'\nimport './c.js'` }), [
      'src/words/a.ts:1 extension',
      'src/words/a.ts:2 extension',
    ])
  })
  it('alias: another name for a file of ours', () => {
    assert.deepEqual(check({ 'src/words/a.ts': `import '#post'\nimport 'molecule/backend'` }), [
      'src/words/a.ts:1 alias',
      'src/words/a.ts:2 alias',
    ])
  })
  it('syntax: a file that cannot be parsed', () => {
    assert.deepEqual(check({ 'src/words/a.ts': 'import {' }), ['src/words/a.ts:1 syntax'])
  })
})

describe('the message', () => {
  it('lists what the layer may import', () => {
    assert.equal(
      messageOf({ 'src/post/a.ts': `import '../doors/door.ts'` }),
      'src/post may not import src/doors/door.ts: it may import only leaf files and src/words',
    )
  })
})

describe('the real table', () => {
  it('lists only known layers and files', () => {
    const known = new Set(Object.keys(layerTable.layers))
    for (const { mayImport } of Object.values(layerTable.layers)) {
      if (mayImport === 'everything') continue
      for (const name of mayImport) assert.ok(known.has(name) || name.endsWith('.ts'), name)
    }
  })
  it('is checked against the sources of the repository', () => {
    const files = readSources(`${import.meta.dirname}/..`)
    assert.ok(files.has('src/backends/backend.ts'))
    assert.ok(files.has('scripts/layers.ts'))
    assert.ok(![...files.keys()].some((file) => file.includes('node_modules')))
  })
})
