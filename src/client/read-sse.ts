/** Reads the `data` of server-sent events from the chunks of an answer, in order. */
import { createParser } from 'eventsource-parser'
import { MoleculeError } from '../errors.ts'

/** An event that is larger is an error. */
const EVENT_BYTES_MAX = 10 * 1024 * 1024

export async function* readSse(chunks: AsyncIterable<Uint8Array>): AsyncIterable<string> {
  let ready: string[] = []
  let problem: Error | undefined
  const decoder = new TextDecoder()
  const parser = createParser({
    maxBufferSize: EVENT_BYTES_MAX,
    onEvent: ({ data }) => ready.push(data),
    onError: (error) => {
      // Unknown fields are ignored, as the standard requires; a buffer overflow is an error.
      if (error.type === 'max-buffer-size-exceeded') problem = error
    },
  })
  for await (const chunk of chunks) {
    parser.feed(decoder.decode(chunk, { stream: true }))
    if (problem !== undefined) throw new MoleculeError('too_large', problem.message, { cause: problem })
    const events = ready
    ready = []
    yield* events
  }
}
