/** Matrix channels on one fake homeserver and one state folder, as after restarts, and all that they say to their door. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import type { Author, Channel, ChannelEvents, IncomingMessage } from '../../../src/doors/chat/channel.ts'
import { matrixKind } from '../../../src/doors/matrix/matrix.ts'
import { createLog } from '../../../src/log.ts'
import { startMatrix } from './matrix.ts'

const COMMANDS = [{ name: 'new', text: 'Start a new conversation' }]
export const ADA: Author = { id: '1001', name: 'Ada', isBot: false }
export const EVE: Author = { id: '1002', name: 'Eve', isBot: false }
export const signal = new AbortController().signal

export async function openMatrix(t: TestContext) {
  const service = await startMatrix()
  const folder = await mkdtemp(join(tmpdir(), 'molecule-matrix-'))
  const lines: string[] = []
  const log = createLog('debug', { write: (line: string) => void lines.push(line) })
  const opened: Channel[] = []
  t.after(async () => {
    for (const channel of opened) await channel.close()
    await service.close()
    await rm(folder, { recursive: true })
    assert(!lines.join().includes(service.token), 'the token is in no log')
    assert.deepEqual(service.world.misused, [])
  })
  const connect = async (handle: Partial<ChannelEvents> = {}, stateFolder = async () => folder) => {
    const { token, apiUrl } = service
    const channel = await matrixKind.open({ token, apiUrl, stateFolder, clock: systemClock, log })
    opened.push(channel)
    const seen = {
      messages: [] as IncomingMessage[],
      problems: [] as (string | undefined)[],
      refusals: [] as Error[],
      gaps: 0,
    }
    const events: ChannelEvents = {
      message: async (message) => void seen.messages.push(message),
      command: async () => undefined,
      press: async () => undefined,
      reconnected() {
        seen.gaps += 1
      },
      problem: (sentence) => void seen.problems.push(sentence),
      refused: (error) => void seen.refusals.push(error),
      ...handle,
    }
    const account = await channel.connect(events, { commands: COMMANDS }, signal)
    return { channel, seen, account }
  }
  return { service, folder, connect }
}

export const textsOf = ({ messages }: { readonly messages: readonly IncomingMessage[] }) =>
  messages.map(({ text }) => text)
