/**
 * What an ACP agent says during a prompt, as events: one reader for each prompt. Text of another message, or after a
 * tool, begins a new paragraph, because agents send them without anything between. Whatever is not known here counts
 * as a sign of life and nothing more.
 */
import { isJsonObject, type JsonObject } from '../../../protocol/json.ts'
import type { ProgressEvent, ReplyBuilder } from '../reply-builder.ts'
import { artifactOf } from './content-artifact.ts'

const TOOL_NAME_CHARS_MAX = 120
/** Of one prompt; what comes after them is seen as activity only. */
const TOOLS_MAX = 10_000

export interface UpdateReader {
  /** `update` of a `session/update`. */
  read(update: unknown): readonly ProgressEvent[]
  /** The call as it was told of so far: a request for permission may leave out what was told before. */
  toolCall(id: unknown): JsonObject | undefined
  /** codex-acp says so of a model's error, which it then sends as if it were the answer. */
  sawSystemError(): boolean
  /** Of the session since it began, where the agent says so; a turn's cost is the difference. */
  costUsd(): number | undefined
}

interface UpdateState {
  readonly answer: ReplyBuilder
  messageId: unknown
  systemError: boolean
  costUsd: number | undefined
  artifacts: number
  readonly tools: Map<string, { readonly name: string; ended: boolean; told: JsonObject }>
}

export function createUpdateReader(answer: ReplyBuilder): UpdateReader {
  const state: UpdateState = {
    answer,
    messageId: undefined,
    systemError: false,
    costUsd: undefined,
    artifacts: 0,
    tools: new Map(),
  }
  return {
    read: (update) => (isJsonObject(update) ? readUpdate(update, state) : []),
    toolCall: (id) => (typeof id === 'string' ? state.tools.get(id)?.told : undefined),
    sawSystemError: () => state.systemError,
    costUsd: () => state.costUsd,
  }
}

function readUpdate(update: JsonObject, state: UpdateState): readonly ProgressEvent[] {
  switch (update['sessionUpdate']) {
    case 'agent_message_chunk':
      return readChunk(update, state)
    case 'tool_call':
    case 'tool_call_update':
      return readTool(update, state)
    case 'usage_update':
      state.costUsd = costOf(update['cost']) ?? state.costUsd
      return ACTIVITY
    case 'session_info_update':
      state.systemError ||= threadStatus(update) === 'systemError'
      return ACTIVITY
    default:
      return ACTIVITY
  }
}

const ACTIVITY: readonly ProgressEvent[] = [{ type: 'activity' }]

function readChunk(update: JsonObject, state: UpdateState): readonly ProgressEvent[] {
  const { content, messageId } = update
  if (!isJsonObject(content)) return ACTIVITY
  if (content['type'] !== 'text') {
    const artifact = artifactOf(content, `content-${state.artifacts + 1}`)
    if (artifact === undefined) return ACTIVITY
    state.artifacts += 1
    return [{ type: 'artifact', artifact, append: false, lastChunk: true }]
  }
  const text = content['text']
  if (typeof text !== 'string' || text === '') return ACTIVITY
  if (isNotice(update, text)) return [{ type: 'status', text: text.trim() }]
  if (messageId !== state.messageId) state.answer.startParagraph()
  state.messageId = messageId
  return state.answer.append(text)
}

/** codex-acp puts its warnings among the answer; they alone have no message id. */
function isNotice(update: JsonObject, text: string): boolean {
  return update['messageId'] === undefined && /^Warning: [^\n]+\n\n$/.test(text)
}

function readTool(update: JsonObject, state: UpdateState): readonly ProgressEvent[] {
  const id = update['toolCallId']
  if (typeof id !== 'string') return ACTIVITY
  state.answer.startParagraph()
  const events: ProgressEvent[] = []
  let tool = state.tools.get(id)
  if (tool === undefined) {
    if (state.tools.size >= TOOLS_MAX) return ACTIVITY
    // After a permission request gemini sends the update alone, without ever having told of the call.
    tool = { name: toolName(update), ended: false, told: {} }
    state.tools.set(id, tool)
    events.push({ type: 'tool', name: tool.name, state: 'started' })
  }
  tool.told = { ...tool.told, ...update }
  const { status } = update
  if (!tool.ended && (status === 'completed' || status === 'failed')) {
    tool.ended = true
    events.push({ type: 'tool', name: tool.name, state: status === 'completed' ? 'finished' : 'failed' })
  }
  return events.length > 0 ? events : ACTIVITY
}

function toolName(update: JsonObject): string {
  const title = typeof update['title'] === 'string' ? (update['title'].split('\n', 1)[0] ?? '').trim() : ''
  const kind = typeof update['kind'] === 'string' ? update['kind'] : 'tool'
  return (title === '' ? kind : title).slice(0, TOOL_NAME_CHARS_MAX)
}

function costOf(cost: unknown): number | undefined {
  if (!isJsonObject(cost) || cost['currency'] !== 'USD') return undefined
  return typeof cost['amount'] === 'number' && cost['amount'] >= 0 ? cost['amount'] : undefined
}

function threadStatus(update: JsonObject): unknown {
  const meta = update['_meta']
  const codex = isJsonObject(meta) ? meta['codex'] : undefined
  const status = isJsonObject(codex) ? codex['threadStatus'] : undefined
  return isJsonObject(status) ? status['type'] : undefined
}
