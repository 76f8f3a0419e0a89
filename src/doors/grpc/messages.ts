/**
 * The messages of the gRPC binding, as bytes and as the JSON that the methods of A2A take and return. Both conversions
 * are generated code of the A2A SDK. Invariant: a request is within the limits of a JSON body before it is converted.
 */
import {
  AgentCard,
  CancelTaskRequest,
  DeleteTaskPushNotificationConfigRequest,
  GetExtendedAgentCardRequest,
  GetTaskPushNotificationConfigRequest,
  GetTaskRequest,
  type JsonInput,
  ListTaskPushNotificationConfigsRequest,
  ListTaskPushNotificationConfigsResponse,
  ListTasksRequest,
  ListTasksResponse,
  SendMessageRequest,
  SendMessageResponse,
  StreamResponse,
  SubscribeToTaskRequest,
  Task,
  TaskPushNotificationConfig,
} from '@a2a-js/sdk'
import { A2AService as service } from '@a2a-js/sdk/server/grpc'
import { BinaryReader } from '@bufbuild/protobuf/wire'
import { MoleculeError } from '../../errors.ts'
import type { JsonObject } from '../../protocol/json.ts'
import { JSON_DEPTH_MAX, jsonDepthWithin } from '../../protocol/schemas.ts'

/** A method of the service: how its messages are read and written. */
export interface GrpcMethod {
  /** The method's name in 1.0. */
  readonly name: string
  /** The params of the JSON-RPC request that means the same. Throws `invalid_request`. */
  readonly read: (bytes: Buffer, valuesMax: number) => JsonObject
  /** A result, or an event of a stream. */
  readonly write: (value: unknown) => Buffer
}

/** A method of the service as the SDK defines it, and how the SDK converts its messages to JSON and back. */
interface MethodParts<Request, Response> {
  readonly path: string
  requestDeserialize(bytes: Buffer): Request
  responseSerialize(message: Response): Buffer
}

type ToJson<T> = { toJSON(message: T): unknown }
type FromJson<T> = { fromJSON(value: JsonInput): T }

const Push = TaskPushNotificationConfig
const GetPush = GetTaskPushNotificationConfigRequest
const DeletePush = DeleteTaskPushNotificationConfigRequest
const ListPush = ListTaskPushNotificationConfigsRequest
const PushList = ListTaskPushNotificationConfigsResponse
const Empty = { fromJSON: () => ({}) }

/** Every method of the service, by its key there. */
export const GRPC_METHODS: Readonly<Record<keyof typeof service, GrpcMethod>> = {
  sendMessage: grpcMethod(service.sendMessage, SendMessageRequest, SendMessageResponse),
  sendStreamingMessage: grpcMethod(service.sendStreamingMessage, SendMessageRequest, StreamResponse),
  getTask: grpcMethod(service.getTask, GetTaskRequest, Task),
  listTasks: grpcMethod(service.listTasks, ListTasksRequest, ListTasksResponse),
  cancelTask: grpcMethod(service.cancelTask, CancelTaskRequest, Task),
  subscribeToTask: grpcMethod(service.subscribeToTask, SubscribeToTaskRequest, StreamResponse),
  createTaskPushNotificationConfig: grpcMethod(service.createTaskPushNotificationConfig, Push, Push),
  getTaskPushNotificationConfig: grpcMethod(service.getTaskPushNotificationConfig, GetPush, Push),
  listTaskPushNotificationConfigs: grpcMethod(service.listTaskPushNotificationConfigs, ListPush, PushList),
  deleteTaskPushNotificationConfig: grpcMethod(service.deleteTaskPushNotificationConfig, DeletePush, Empty),
  getExtendedAgentCard: grpcMethod(service.getExtendedAgentCard, GetExtendedAgentCardRequest, AgentCard),
}

function grpcMethod<Request, Response>(
  { path, requestDeserialize, responseSerialize }: MethodParts<Request, Response>,
  request: ToJson<Request>,
  response: FromJson<Response>,
): GrpcMethod {
  // The generated decoder also takes a reader.
  const decode = requestDeserialize as unknown as (reader: BinaryReader) => Request
  return {
    name: path.slice(path.lastIndexOf('/') + 1),
    read: (bytes, valuesMax) => readParams(() => request.toJSON(decode(createLimitedReader(bytes, valuesMax)))),
    write: (value) => responseSerialize(response.fromJSON(value as JsonInput)),
  }
}

function readParams(read: () => unknown): JsonObject {
  let params: unknown
  try {
    params = read()
  } catch (cause) {
    if (cause instanceof MoleculeError) throw cause
    // Bytes of another type, or nested so deep that the decoder ran out of stack.
    throw new MoleculeError('invalid_request', 'the message cannot be decoded', { cause })
  }
  if (jsonDepthWithin(params, JSON_DEPTH_MAX)) return params as JsonObject
  throw new MoleculeError('invalid_request', `the message is nested deeper than ${JSON_DEPTH_MAX} levels`)
}

/** A member of an object takes eight numbers: tag and length of the entry, its key, its value and the value's kind. */
const READS_PER_VALUE = 8

/** Prevents a busy event loop: 8 MiB can hold four million values. One value more than allowed is refused. */
function createLimitedReader(bytes: Buffer, valuesMax: number): BinaryReader {
  const reader = new BinaryReader(bytes)
  const read = reader.uint32
  let left = valuesMax * READS_PER_VALUE
  reader.uint32 = function (this: BinaryReader) {
    if (left-- > 0) return read.call(this)
    throw new MoleculeError('invalid_request', `the message has more than ${valuesMax} values; send it as one text`)
  }
  return reader
}
