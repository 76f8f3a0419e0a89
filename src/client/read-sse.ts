/** Server-sent events from the bytes of an answer: the data of each, in order, however the bytes were cut. */
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
      // Fields that nobody knows are passed over, as the standard has it; a buffer that overflowed is not.
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
