/** Tests the check of folder sizes on small samples and runs it on the repository itself. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { checkFolderSizes, FOLDER_FILES_MAX } from './folder-sizes.ts'
import { readSources } from './layers.ts'

const files = (folder: string, count: number, extension = '.ts') =>
  Array.from({ length: count }, (_each, index) => `${folder}/file-${index}${extension}`)

describe('checking the sizes of folders', () => {
  it('reports a folder with too many source files, and says how many', () => {
    const [problem, ...others] = checkFolderSizes(files('src/post', FOLDER_FILES_MAX + 1))
    assert.equal(problem, 'src/post has 23 source files, more than 22: make folders in it by what they are for')
    assert.deepEqual(others, [])
  })
  it('counts neither tests nor the files of the folders in it', () => {
    const full = files('src/post', FOLDER_FILES_MAX)
    assert.deepEqual(checkFolderSizes([...full, ...files('src/post', 9, '.test.ts'), ...files('src/post/box', 5)]), [])
  })
  it('lets the numbered list of migrations grow', () => {
    assert.deepEqual(checkFolderSizes(files('src/store/migrations', FOLDER_FILES_MAX + 1)), [])
  })
  it('passes on this repository', () => {
    assert.deepEqual(checkFolderSizes(readSources(join(import.meta.dirname, '..')).keys()), [])
  })
})
