/**
 * The commands of the README, run in their order as a newcomer pastes them. Each prints what the README shows below it,
 * up to ids, times, tokens and addresses.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type PlatformUnderTest, startPlatform } from '../harness/platform.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

interface CodeBlock {
  readonly language: string
  readonly text: string
}

const readBlocks = (markdown: string): CodeBlock[] =>
  [...markdown.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map(([, language = '', body = '']) => ({
    language,
    text: body,
  }))

/** What differs from run to run gets one name, so that the rest can be compared. */
const normalize = (output: string): string =>
  output
    .replaceAll(/#[\w-]{8,}(\.\.\.)?/g, '#CODE')
    .replaceAll(/mol_[\w-]+(\.\.\.)?/g, 'TOKEN')
    .replaceAll(/[0-9A-HJKMNP-TV-Z]{26}/g, 'ULID')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replaceAll(/(127\.0\.0\.1|localhost):\d+/g, 'HOST')
    .replaceAll(/ +$/gm, '')
    .trim()

describe('the commands of the README', () => {
  let platform: PlatformUnderTest
  let blocks: CodeBlock[]
  let workspaceId = ''
  before(async () => {
    blocks = readBlocks(await readFile(`${ROOT}/README.md`, 'utf8'))
    platform = await startPlatform()
  })
  after(() => platform.dispose())

  /** Runs a block with this test's platform in place of the one on port 8080, and gives what it printed. */
  const paste = async (script: string): Promise<string> => {
    const here = script
      .replaceAll('localhost:8080', new URL(platform.url).host)
      .replaceAll('~/.molecule', platform.dataDir)
      .replaceAll('ws_...', workspaceId)
    const child = spawn('/bin/sh', ['-e', '-c', here], {
      cwd: ROOT,
      env: { PATH: process.env['PATH'], HOME: platform.dataDir, MOLECULE_HOME: platform.dataDir },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [printed] = await Promise.all([text(child.stdout), once(child, 'close')])
    assert.equal(child.exitCode, 0, here)
    return printed
  }
  /** The block whose first command is this one, and the output that follows it. */
  const blockOf = (start: string): { readonly script: string; readonly shown: string } => {
    const at = blocks.findIndex((block) => block.language === 'sh' && block.text.includes(start))
    const shown = blocks[at + 1]
    assert.ok(at >= 0 && shown !== undefined && shown.language !== 'sh', `the README shows no output of "${start}"`)
    return { script: blocks[at]?.text ?? '', shown: shown.text }
  }

  test('PL-1 npm start prints the address, the login link, the token file and the log', () => {
    const shown = normalize(blockOf('npm start').shown).replaceAll('/home/ana/.molecule', 'DATA')
    const home = `MOLECULE_HOME=${platform.dataDir} `
    const printed = normalize(platform.output().replaceAll(home, '')).replaceAll(platform.dataDir, 'DATA')
    assert.ok(printed.startsWith(shown), printed)
  })

  test('CL-1 a workspace of the mock is made and answers', async () => {
    const { script, shown } = blockOf('workspace create parrot')
    assert.equal(normalize(await paste(script)), normalize(shown))
  })

  test('PL-2 PL-5 a program makes a workspace and gets the finished task of its message', async () => {
    const { script, shown } = blockOf('curl -s localhost:8080/workspaces -H')
    const [create = '', send = ''] = script.split('# 2.')
    workspaceId = JSON.parse(await paste(create)).id
    const token = create.slice(0, create.indexOf('\n'))
    const answer = JSON.parse(normalize(await paste(`${token}\n#${send}`)))
    assert.deepEqual(answer, JSON.parse(normalize(shown)))
  })

  test('CL-1 an external workspace is made with its token and its connect command', async () => {
    const { script, shown } = blockOf('workspace create laptop')
    assert.equal(normalize(await paste(script)), normalize(shown))
  })

  test('CL-1 workspace list shows them, explain tells the story of a message', async () => {
    for (const start of ['workspace list', 'molecule explain m-1']) {
      const { script, shown } = blockOf(start)
      assert.equal(normalize(await paste(script)), normalize(shown))
    }
  })
})
