/**
 * A program for the stdio backend: reads JSON-RPC requests and writes responses, one per line. Its first argument chooses
 * the behaviour, or a message `!NAME text`.
 */
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const [behaviour = 'echo', ...more] = process.argv.slice(2)
const send = (message: object) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const openRequests = new Map<string, number>()
let messages = 0

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  if (method === 'CancelTask' || method === 'tasks/cancel') return cancel(id, params.id)
  messages += 1
  const text = params.message.parts.map((part: { text?: string }) => part.text ?? '').join('')
  const [name, rest] = text.startsWith('!')
    ? [text.slice(1).split(' ')[0], text.split(' ').slice(1).join(' ')]
    : [behaviour, text]
  act(name, { id, text: rest, params })
})

interface Message {
  readonly id: number
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: requests have many shapes
  readonly params: any
}

function cancel(id: number, task: string): void {
  const requestId = openRequests.get(task)
  if (requestId === undefined) return
  openRequests.delete(task)
  send({ id: requestId, error: { code: -32000, message: 'it was cancelled' } })
  send({ id, result: {} })
}

function act(name: string | undefined, { id, text, params }: Message): void {
  switch (name) {
    case 'endless':
      // In its own process session: only its mark shows which turn started it.
      spawn('sleep', ['300'], { detached: true, stdio: 'ignore' })
      return
    case 'patient':
      openRequests.set(params.metadata.molecule.task_id, id)
      return
    case 'complain':
      process.stderr.write('no such luck\n')
      process.exitCode = 3
      process.stdin.destroy()
      return
    case 'refuse':
      send({ id, error: { code: -32001, message: text, data: { retryable: more.includes('retryable') } } })
      return
    case 'flood':
      send({ id, result: 'x'.repeat(11 * 1024 * 1024) })
      return
    case 'slowly':
      setTimeout(() => send({ id, result: { parts: [{ text }] } }), Math.random() * 50)
      return
    case 'count':
      send({ id, result: `${process.pid} ${messages}` })
      return
    case 'show':
      send({ id, result: JSON.stringify(params) })
      return
    case 'ask':
      send({ id, result: { status: { state: 'input-required', message: { parts: [{ text }] } } } })
      return
    case 'write':
      writeFileSync(join(params.metadata.molecule.outbox, 'note.txt'), text)
      send({ id, result: 'written' })
      return
    case 'writelate':
      send({ id, result: 'written' })
      setTimeout(() => {
        try {
          writeFileSync(join(params.metadata.molecule.outbox, 'late.txt'), text)
        } catch {
          // The folder is gone.
        }
      }, 50)
      return
    case 'later':
      setTimeout(() => send({ id, result: 'later' }), 200)
      return
    case 'noise':
      process.stdout.write('hello, I am a program\n\n')
      send({ id: 999_999, result: 'an unknown id' })
      send({ id, result: text })
      return
    default:
      send({ id, result: { parts: [{ text }] } })
  }
}
