/** A gRPC client made from the public service definition of A2A, without the client code of any SDK. */
import { A2AService } from '@a2a-js/sdk/server/grpc'
import {
  type Client,
  type ClientOptions,
  type ClientReadableStream,
  credentials,
  Metadata,
  makeGenericClientConstructor,
  type ServiceError,
} from '@grpc/grpc-js'
import { waitUntil } from '../wait.ts'

export interface GrpcClient {
  /** The result of a unary method; rejects with the `ServiceError`. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read messages of every type
  call(method: string, request: object, headers?: Readonly<Record<string, string>>): Promise<any>
  /** The metadata that came before the last result. */
  head(): Metadata | undefined
  stream(method: string, request: object, headers?: Readonly<Record<string, string>>): GrpcStream
  close(): void
}

export interface GrpcStream {
  /** The kinds of the events so far: task, statusUpdate, ... */
  readonly kinds: string[]
  // biome-ignore lint/suspicious/noExplicitAny: tests read messages of every type
  readonly events: any[]
  /** Resolves at the end; with the error, if it ended with one. */
  readonly ended: Promise<ServiceError | undefined>
  readonly readable: ClientReadableStream<unknown>
  /** Resolves when this many events have arrived. */
  arrived(count: number): Promise<void>
}

const A2aServiceClient = makeGenericClientConstructor(A2AService, 'A2AService')

export function createGrpcClient(port: number, token: string | undefined, options?: ClientOptions): GrpcClient {
  const client = new A2aServiceClient(`127.0.0.1:${port}`, credentials.createInsecure(), options) as Client &
    Record<string, (...args: unknown[]) => unknown>
  const metadataOf = (headers: Readonly<Record<string, string>> = {}) => {
    const metadata = new Metadata()
    if (token !== undefined) metadata.set('authorization', `Bearer ${token}`)
    for (const [name, value] of Object.entries(headers)) metadata.set(name, value)
    return metadata
  }
  let head: Metadata | undefined
  return {
    call: (method, request, headers) =>
      new Promise((resolve, reject) => {
        const answer = (error: ServiceError | null, value: unknown) => (error ? reject(error) : resolve(value))
        const call = client[method]?.(request, metadataOf(headers), answer) as NodeJS.EventEmitter
        call.on('metadata', (metadata: Metadata) => {
          head = metadata
        })
      }),
    head: () => head,
    stream(method, request, headers) {
      const readable = client[method]?.(request, metadataOf(headers)) as ClientReadableStream<unknown>
      return followStream(readable)
    },
    close: () => client.close(),
  }
}

function followStream(readable: ClientReadableStream<unknown>): GrpcStream {
  const kinds: string[] = []
  const events: unknown[] = []
  readable.on('data', (event: { payload: { $case: string } }) => {
    kinds.push(event.payload.$case)
    events.push(event)
  })
  const ended = new Promise<ServiceError | undefined>((resolve) => {
    readable.on('error', (error: ServiceError) => resolve(error)).on('end', () => resolve(undefined))
  })
  const arrived = (count: number) =>
    waitUntil(
      () => events.length >= count,
      () => `${count} events, not ${kinds}`,
    )
  return { kinds, events, ended, readable, arrived }
}
