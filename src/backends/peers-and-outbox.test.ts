import assert from 'node:assert/strict'
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { listEvents, makeTurn, type TurnOverrides } from '../../test/fakes/turns.ts'
import { temporaryDir } from '../../test/harness/process-harness.ts'
import { silentLog } from '../log.ts'
import type { Backend, BackendEvent, Turn } from './backend.ts'
import { withPeersAndOutbox } from './peers-and-outbox.ts'

const DONE: BackendEvent = { type: 'done', parts: [{ text: 'made' }], finality: 'completed' }

/** Runs a turn of an agent that calls `work` and then answers. */
async function answer(
  overrides: TurnOverrides,
  work: (turn: Turn, outbox: string) => BackendEvent | undefined,
  more: Partial<Backend> = {},
) {
  const backend: Backend = {
    name: 'played',
    ...more,
    validate: async () => ({ ok: true }),
    async *run(turn) {
      yield work(turn, turn.env['MOLECULE_OUTBOX'] ?? '') ?? DONE
    },
    close: async () => undefined,
  }
  return await listEvents(withPeersAndOutbox(backend, silentLog).run(makeTurn(overrides), new AbortController().signal))
}

test('TW-2 the prompt of an agent with a token names its peers, after its own system prompt', async (t) => {
  const workingDir = temporaryDir(t)
  const prompts: string[] = []
  const note = ({ systemPrompt }: Turn) => void prompts.push(systemPrompt)
  await answer({ workingDir, systemPrompt: 'Be brief.', env: { MOLECULE_WORKSPACE_TOKEN: 'x' } }, note)
  await answer({ workingDir, systemPrompt: 'Be brief.' }, note)
  assert.match(prompts[0] ?? '', /^Be brief\.\n\n.*a2a peers.*a2a delegate .*\[A2A_ERROR\]/s)
  assert.doesNotMatch(prompts[1] ?? '', /a2a/)
})

test('TW-2 the prompt of an agent with the MCP server names its tools, any other prompt the commands', async (t) => {
  const workingDir = temporaryDir(t)
  const prompts: string[] = []
  const note = ({ systemPrompt }: Turn) => void prompts.push(systemPrompt)
  const program = { name: 'molecule', command: 'molecule', args: [], env: {} }
  const mcpServers = [{ name: 'molecule', url: 'http://x', tokenVariable: 'T', token: 't', program }]
  const given = { workingDir, env: { MOLECULE_WORKSPACE_TOKEN: 'x' }, mcpServers }
  await answer(given, note, { mcpToolName: (server, tool) => `${server}.${tool}` })
  await answer(given, note)
  assert.match(prompts[0] ?? '', /- molecule\.list_peers: .*molecule\.delegate_task: .*\[A2A_ERROR\]/s)
  assert.match(prompts[1] ?? '', /On your PATH are:\n- `a2a peers`/)
})

test('PL-17 files in the outbox become artifacts of the answer, links and folders do not', async (t) => {
  const workingDir = temporaryDir(t)
  writeFileSync(join(workingDir, 'secret'), 'x')
  const events = await answer({ workingDir, messageId: 'm1' }, (_turn, outbox) => {
    writeFileSync(join(outbox, 'b.txt'), 'second')
    writeFileSync(join(outbox, 'a.csv'), 'first')
    symlinkSync('/etc/passwd', join(outbox, 'link'))
    mkdirSync(join(outbox, 'folder'))
    return undefined
  })
  const seen = events.map((event) => (event.type === 'artifact' ? event.artifact : event.type))
  assert.deepEqual(seen, [
    {
      artifactId: 'm1-file-1',
      name: 'a.csv',
      parts: [
        { raw: Buffer.from('first').toString('base64'), filename: 'a.csv', mediaType: 'text/csv; charset=utf-8' },
      ],
    },
    {
      artifactId: 'm1-file-2',
      name: 'b.txt',
      parts: [
        { raw: Buffer.from('second').toString('base64'), filename: 'b.txt', mediaType: 'text/plain; charset=utf-8' },
      ],
    },
    'done',
  ])
})

test('PL-17 a file that is too large is refused with a status, and files of a failed attempt are removed', async (t) => {
  const workingDir = temporaryDir(t)
  const failed: BackendEvent = { type: 'failed', error: new Error('broke') as never }
  await answer({ workingDir, conversationId: 'c' }, (_turn, outbox) => {
    writeFileSync(join(outbox, 'half'), 'half')
    return failed
  })
  const events = await answer({ workingDir, conversationId: 'c' }, (_turn, outbox) => {
    assert.equal(existsSync(join(outbox, 'half')), false)
    writeFileSync(join(outbox, 'huge'), Buffer.alloc(17 * 1024 * 1024))
    return undefined
  })
  assert.deepEqual(
    events.map(({ type }) => type),
    ['status', 'done'],
  )
  assert.match(events[0]?.type === 'status' ? events[0].text : '', /huge was not delivered/)
})

test('PL-17 files beyond the limit of an answer are refused, each with a status', async (t) => {
  const events = await answer({ workingDir: temporaryDir(t) }, (_turn, outbox) => {
    for (let n = 0; n < 66; n++) writeFileSync(join(outbox, `f${n}`), 'x')
    return undefined
  })
  const count = (type: BackendEvent['type']) => events.filter((event) => event.type === type).length
  assert.deepEqual([count('artifact'), count('status'), count('done')], [64, 2, 1])
})

test('PL-17 a link in place of our folder is refused, not followed', async (t) => {
  const workingDir = temporaryDir(t)
  symlinkSync(temporaryDir(t), join(workingDir, '.molecule'))
  const [event] = await answer({ workingDir }, () => undefined)
  assert.equal(event?.type === 'failed' && event.error.code, 'bad_config')
})
