/** A request and a response in memory, for code that reads bodies and writes answers. The test is the client. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { PassThrough, Writable } from 'node:stream'

export interface FakeRequestFields {
  readonly method?: string
  readonly url?: string
  readonly headers?: IncomingHttpHeaders
  /** Whether the whole body has arrived. */
  readonly complete?: boolean
}

/** A request whose body the test writes. */
export function fakeRequest(fields: FakeRequestFields = {}): IncomingMessage & PassThrough {
  const given = { method: 'POST', url: '/', headers: {}, complete: true, socket: {}, ...fields }
  return Object.assign(new PassThrough(), given) as unknown as IncomingMessage & PassThrough
}

/** A response that keeps what was written. While the client does not read, it asks its writer to wait. */
export class FakeResponse extends Writable {
  status: number | undefined
  headers: Readonly<Record<string, unknown>> = {}
  /** What was sent, one item for each write. */
  readonly bytes: Buffer[] = []
  flushes = 0
  private reads = true
  private goOn: () => void = () => undefined

  constructor() {
    super({ highWaterMark: 16 * 1024, decodeStrings: false })
  }

  get sent(): string[] {
    return this.bytes.map(String)
  }

  get text(): string {
    return this.sent.join('')
  }

  /** The same object as the code under test sees it. */
  get response(): ServerResponse {
    return this as unknown as ServerResponse
  }

  get headersSent(): boolean {
    return this.status !== undefined
  }

  setHeader(name: string, value: unknown): void {
    this.headers = { ...this.headers, [name]: value }
  }

  writeHead(status: number, headers: Readonly<Record<string, unknown>>): this {
    if (this.headersSent) throw new Error('the headers are sent already')
    this.status = status
    this.headers = { ...this.headers, ...headers }
    return this
  }

  flushHeaders(): void {
    this.flushes++
  }

  /** From now on the client reads nothing. */
  stopReading(): void {
    this.reads = false
  }

  /** The client reads all that waits for it, and everything later. */
  readAll(): void {
    this.reads = true
    const { goOn } = this
    this.goOn = () => undefined
    goOn()
  }

  override _write(chunk: string | Buffer, _encoding: string, done: () => void): void {
    this.bytes.push(Buffer.from(chunk))
    if (this.reads) done()
    else this.goOn = done
  }
}
