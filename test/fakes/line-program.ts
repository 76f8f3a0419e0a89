/**
 * A program for the stdio backend: reads lines of JSON-RPC, answers lines. What it does is its first argument, or the
 * first word of a message that begins with `!`.
 */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

const [behaviour = 'echo', ...more] = process.argv.slice(2)
const say = (message: object) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const open = new Map<string, number>()
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
  // biome-ignore lint/suspicious/noExplicitAny: whatever came over the wire
  readonly params: any
}

function cancel(id: number, task: string): void {
  const message = open.get(task)
  if (message === undefined) return
  open.delete(task)
  say({ id: message, error: { code: -32000, message: 'it was cancelled' } })
  say({ id, result: {} })
}

function act(name: string | undefined, { id, text, params }: Message): void {
  switch (name) {
    case 'endless':
      // In a session of its own: only its mark tells whose it is.
      spawn('sleep', ['300'], { detached: true, stdio: 'ignore' })
      return
    case 'patient':
      open.set(params.metadata.molecule.task_id, id)
      return
    case 'complain':
      process.stderr.write('no such luck\n')
      process.exitCode = 3
      process.stdin.destroy()
      return
    case 'refuse':
      say({ id, error: { code: -32001, message: text, data: { retryable: more.includes('retryable') } } })
      return
    case 'flood':
      say({ id, result: 'x'.repeat(11 * 1024 * 1024) })
      return
    case 'slowly':
      setTimeout(() => say({ id, result: { parts: [{ text }] } }), Math.random() * 50)
      return
    case 'count':
      say({ id, result: `${process.pid} ${messages}` })
      return
    case 'show':
      say({ id, result: JSON.stringify(params) })
      return
    case 'noise':
      process.stdout.write('hello, I am a program\n\n')
      say({ id: 999_999, result: 'to nobody' })
      say({ id, result: text })
      return
    default:
      say({ id, result: { parts: [{ text }] } })
  }
}
