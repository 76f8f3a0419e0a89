/** Reads the `data` of server-sent events from the chunks of an answer, in order. */
import { createParser } from 'eventsource-parser'
import { MoleculeError } from '../errors.ts'
import { ANSWER_BYTES_MAX } from './outbound.ts'

export async function* readSse(chunks: AsyncIterable<Buffer>): AsyncIterable<string> {
  let ready: string[] = []
  let problem: Error | undefined
  const decoder = new TextDecoder()
  const parser = createParser({
    maxBufferSize: ANSWER_BYTES_MAX,
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
