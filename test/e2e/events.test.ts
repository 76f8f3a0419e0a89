/** The event stream of a workspace, whose reader is disconnected and whose platform is killed. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { type PlatformUnderTest, startPlatform } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

interface Row {
  readonly seq: number
  readonly events: readonly { readonly type: string; readonly text?: string }[]
}

/** Reads the events after the last row into `rows` until the connection ends or the signal aborts. */
async function listen(platform: PlatformUnderTest, id: string, reading: { rows: Row[]; signal: AbortSignal }) {
  const last = reading.rows.at(-1)?.seq ?? 0
  const response = await fetch(`${platform.url}/workspaces/${id}/events`, {
    headers: { Authorization: `Bearer ${platform.token}`, 'Last-Event-ID': String(last) },
    signal: reading.signal,
  })
  assert.equal(response.status, 200)
  let text = ''
  try {
    for await (const chunk of (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
      text += chunk
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const data = /^data: (.*)$/m.exec(text.slice(0, end))?.[1]
        if (data !== undefined) reading.rows.push(JSON.parse(data))
        text = text.slice(end + 2)
      }
    }
  } catch {
    // The test or the platform's end cut the connection; the next reader continues after the last row.
  }
}

test('PL-7 a reader that is disconnected, even by kill -9, resumes with Last-Event-ID and misses nothing', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'molecule-e2e-'))
  let platform = await startPlatform({ dataDir })
  try {
    const id = await platform.exec('echo one; sleep 0.1; echo two')
    const rows: Row[] = []
    const cut = new AbortController()
    const first = listen(platform, id, { rows, signal: cut.signal })
    await platform.send(id, 'a')
    await waitUntil(() => rows.length > 0)
    cut.abort()
    await first
    await platform.send(id, 'b')
    const second = listen(platform, id, { rows, signal: AbortSignal.timeout(60_000) })
    await platform.send(id, 'c')
    await platform.stop('SIGKILL')
    await second
    platform = await startPlatform({ dataDir })
    const end = new AbortController()
    const third = listen(platform, id, { rows, signal: end.signal })
    await platform.send(id, 'd')
    const replies = () => rows.flatMap(({ events }) => events).filter(({ type }) => type === 'reply').length
    await waitUntil(() => replies() === 4)
    end.abort()
    await third
    const seqs = rows.map(({ seq }) => seq)
    assert.deepEqual(
      seqs,
      Array.from({ length: seqs.length }, (_, index) => index + 1),
    )
    assert.ok(rows.flatMap(({ events }) => events).some(({ type, text }) => type === 'text' && text === 'one\n'))
    const bad = await fetch(`${platform.url}/workspaces/${id}/events?since=x`, {
      headers: { Authorization: `Bearer ${platform.token}` },
    })
    assert.equal(bad.status, 400)
  } finally {
    await platform.dispose()
    await rm(dataDir, { recursive: true, force: true })
  }
})
