import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { createPastedInput } from './pasted-input.ts'

const folder = mkdtempSync(join(tmpdir(), 'molecule-paste '))
after(() => rmSync(folder, { recursive: true }))
const file = join(folder, 'my report.pdf')
writeFileSync(file, 'x')

const paste = (text: string) => `\u001b[200~${text}\u001b[201~`

/** What the line editor gets for these chunks of the terminal. */
function type(...chunks: (string | Buffer)[]) {
  const tooLong: number[] = []
  const input = createPastedInput({ onTooLong: (charactersMax) => tooLong.push(charactersMax) })
  let typed = ''
  input.stream.on('data', (chunk: Buffer) => {
    typed += chunk.toString('utf8')
  })
  for (const chunk of chunks) input.stream.write(chunk)
  return { ...input, typed, tooLong }
}

test('CL-6 pasted lines are one placeholder in the line, and expand to the text', () => {
  const { typed, expand } = type('see ', paste('one\r\ntwo\rthree\n'), ' ok\r')
  assert.equal(typed, 'see [paste 1: 3 lines] ok\r')
  assert.deepEqual(expand(typed.trim()), { text: 'see one\ntwo\nthree ok', files: [], isFilesAlone: false })
})

test('CL-6 a paste of one line is typed as it is, without control characters', () => {
  assert.equal(type(paste('plain\u0003\u001b[2J text\there\n')).typed, 'plain text here')
})

test('CL-6 a marker and a character that are cut between two chunks are put together', () => {
  const bytes = Buffer.from(`${paste('a\nü')}é`)
  for (let cut = 2; cut < bytes.length; cut++) {
    const { typed, expand } = type(bytes.subarray(0, cut), bytes.subarray(cut))
    assert.equal(typed, '[paste 1: 2 lines]é', String(cut))
    assert.equal(expand(typed).text, 'a\nüé')
  }
  assert.equal(type('\u001b').typed, '\u001b')
  assert.equal(type('\u001b[A', '\u001b[2', '~').typed, '\u001b[A\u001b[2~')
})

test('CL-6 a dropped file becomes a placeholder that names it, and expands to its name and its path', () => {
  const { typed, expand } = type('read ', paste(`'${file}' `), 'now')
  assert.equal(typed, 'read [file my report.pdf] now')
  assert.deepEqual(expand(typed), { text: 'read my report.pdf now', files: [file], isFilesAlone: false })
  const other = join(mkdtempSync(join(folder, 'sub')), 'my report.pdf')
  writeFileSync(other, 'y')
  const two = type(paste(`'${file}'\n'${other}'`))
  assert.equal(two.typed, '[file my report.pdf] [file 2 my report.pdf] ')
  assert.deepEqual(two.expand(two.typed), {
    text: 'my report.pdf my report.pdf ',
    files: [file, other],
    isFilesAlone: true,
  })
})

test('CL-6 a placeholder that a person typed or that was forgotten stays as it is', () => {
  const { expand } = type(paste('a\nb'))
  assert.equal(expand('[paste 9: 2 lines] [file x] [note]').text, '[paste 9: 2 lines] [file x] [note]')
  const many = type(...Array.from({ length: 201 }, (_, index) => paste(`${index}\nx`)))
  assert.equal(many.expand('[paste 1: 2 lines]').text, '[paste 1: 2 lines]')
  assert.equal(many.expand('[paste 201: 2 lines]').text, '200\nx')
})

test('CL-6 a paste that is too long is left out and reported, and typing goes on', () => {
  const long = 'x'.repeat(600_000)
  const { typed, tooLong } = type('a', '\u001b[200~', long, long, `${long}\u001b[201~b`)
  assert.deepEqual([typed, tooLong], ['ab', [1_000_000]])
  assert.deepEqual(type(paste('y'.repeat(1_000_001))).tooLong, [1_000_000])
})
