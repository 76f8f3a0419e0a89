/**
 * Reads the `session/update` messages of one prompt into events. Text of another message, or text after a tool, starts
 * a new paragraph, because agents put nothing between them. An unknown update counts as activity and nothing else.
 */
import type {
  ContentBlock,
  ContentChunk,
  Cost,
  EmbeddedResourceResource,
  SessionInfoUpdate,
  SessionUpdate,
  ToolCallUpdate,
} from '@agentclientprotocol/sdk'
import type { Artifact, Part } from '../../../protocol/a2a.ts'
import { shownFileName } from '../../../protocol/file-name.ts'
import { isJsonObject } from '../../../protocol/json.ts'
import { ACTIVITY, type ProgressEvent, type ReplyBuilder } from '../reply-builder.ts'
import { diffsOfContent, isToolName, type KnownToolCall, NO_INPUT, toolNameOf, toolSubject } from './tool-call.ts'
import { type Unchecked, unchecked } from './wire.ts'

/** Tool calls of one prompt; a call beyond them is reported as activity only. */
const TOOLS_MAX = 10_000

export interface UpdateReader {
  /** `update` of a `session/update`. */
  read(update: unknown): readonly ProgressEvent[]
  /** All that the agent said of this call so far: a permission request may leave out what came before. */
  toolCall(id: unknown): KnownToolCall | undefined
  /** Records a permission request, so that the events of the call show the same tool and subject. */
  recordRequest(toolCall: unknown, subject: string): void
  /** codex-acp reports a system error and then sends the model's error as if it were the answer. */
  sawSystemError(): boolean
  /** Cost of the session since it began, if the agent reports it; the cost of a turn is the difference. */
  costUsd(): number | undefined
}

interface UpdateState {
  readonly reply: ReplyBuilder
  readonly options: UpdateReaderOptions
  messageId: unknown
  systemError: boolean
  costUsd: number | undefined
  artifacts: number
  readonly tools: Map<string, TrackedTool>
}

interface TrackedTool {
  known: KnownToolCall
  hasStarted: boolean
  hasEnded: boolean
}

export interface UpdateReaderOptions {
  readonly workingDir: string
  /** The title of a call's first update is the tool's name. */
  readonly titlesAreNames?: boolean | undefined
  /** For the log: a warning of the program may hold paths. */
  readonly warn: (words: string) => void
}

export function createUpdateReader(reply: ReplyBuilder, options: UpdateReaderOptions): UpdateReader {
  const state: UpdateState = {
    reply,
    options,
    messageId: undefined,
    systemError: false,
    costUsd: undefined,
    artifacts: 0,
    tools: new Map(),
  }
  return {
    read: (update) => (isJsonObject(update) ? readUpdate(unchecked(update), state) : []),
    toolCall: (id) => (typeof id === 'string' ? state.tools.get(id)?.known : undefined),
    recordRequest(toolCall, subject) {
      const update = unchecked<ToolCallUpdate>(toolCall)
      if (typeof update.toolCallId !== 'string' || subject === NO_INPUT) return
      const before = state.tools.get(update.toolCallId)?.known.call
      // A request of another kind is not about the tool itself.
      if (before !== undefined && update.kind !== undefined && update.kind !== before.kind) return
      const tool = trackTool(update.toolCallId, update, state)
      if (tool !== undefined) tool.known = { ...tool.known, askedSubject: subject }
    },
    sawSystemError: () => state.systemError,
    costUsd: () => state.costUsd,
  }
}

function readUpdate(update: Unchecked<SessionUpdate>, state: UpdateState): readonly ProgressEvent[] {
  switch (update.sessionUpdate) {
    case 'agent_message_chunk':
      return readChunk(update, state)
    case 'tool_call':
    case 'tool_call_update':
      return readTool(unchecked(update), state)
    case 'usage_update':
      state.costUsd = costOf(unchecked(update.cost)) ?? state.costUsd
      return ACTIVITY
    case 'session_info_update':
      state.systemError ||= threadStatus(update) === 'systemError'
      return ACTIVITY
    default:
      return ACTIVITY
  }
}

function readChunk({ content, messageId }: Unchecked<ContentChunk>, state: UpdateState): readonly ProgressEvent[] {
  const block = unchecked<ContentBlock>(content)
  if (block.type !== 'text') {
    const artifact = artifactOf(block, `content-${state.artifacts + 1}`)
    if (artifact === undefined) return ACTIVITY
    state.artifacts += 1
    return [{ type: 'artifact', artifact, append: false, lastChunk: true }]
  }
  const { text } = block
  if (typeof text !== 'string' || text === '') return ACTIVITY
  // codex-acp sends its warnings between the text of the answer. Only they have no message id.
  const isWarning = messageId === undefined && /^Warning: [^\n]+\n\n$/.test(text)
  if (isWarning) {
    state.options.warn(text.trim())
    return ACTIVITY
  }
  if (messageId !== state.messageId) state.reply.startParagraph()
  state.messageId = messageId
  return state.reply.append(text)
}

function readTool(update: Unchecked<ToolCallUpdate>, state: UpdateState): readonly ProgressEvent[] {
  const { toolCallId: id, status } = update
  if (typeof id !== 'string') return ACTIVITY
  state.reply.startParagraph()
  const tool = trackTool(id, update, state)
  if (tool === undefined) return ACTIVITY
  const subject = toolSubject(tool.known, state.options.workingDir)
  const use = { type: 'tool', name: toolNameOf(tool.known), ...(subject !== '' && { subject }) } as const
  const events: ProgressEvent[] = []
  // A pending call without an input has not begun: its input is still being written.
  if (!tool.hasStarted && (status !== 'pending' || subject !== '')) {
    tool.hasStarted = true
    events.push({ ...use, state: 'started' })
  }
  if (!tool.hasEnded && (status === 'completed' || status === 'failed')) {
    tool.hasEnded = true
    const diffs = status === 'completed' ? diffsOfContent(update.content) : []
    events.push({ ...use, state: status === 'completed' ? 'finished' : 'failed', ...(diffs.length > 0 && { diffs }) })
  }
  return events.length > 0 ? events : ACTIVITY
}

/** Adds the update to what is known of its call; undefined if the prompt has too many calls. */
function trackTool(id: string, update: Unchecked<ToolCallUpdate>, { tools, options }: UpdateState) {
  const tool = tools.get(id)
  if (tool !== undefined) {
    tool.known = { ...tool.known, call: { ...tool.known.call, ...update } }
    return tool
  }
  if (tools.size >= TOOLS_MAX) return undefined
  const ownName = options.titlesAreNames === true && isToolName(update.title) ? update.title : undefined
  // After a permission request gemini sends only updates of the call, never the `tool_call` itself.
  const added: TrackedTool = { known: { call: update, ownName }, hasStarted: false, hasEnded: false }
  tools.set(id, added)
  return added
}

function costOf({ amount, currency }: Unchecked<Cost>): number | undefined {
  return currency === 'USD' && typeof amount === 'number' && amount >= 0 ? amount : undefined
}

function threadStatus({ _meta: meta }: Unchecked<SessionInfoUpdate>): unknown {
  const codex = isJsonObject(meta) ? meta['codex'] : undefined
  const status = isJsonObject(codex) ? codex['threadStatus'] : undefined
  return isJsonObject(status) ? status['type'] : undefined
}

/**
 * Turns an ACP content block that is no text into an artifact. Takes only data that the block itself carries: a link to
 * a file of the machine is meant for the agent and is never followed.
 */
function artifactOf(content: Unchecked<ContentBlock>, artifactId: string): Artifact | undefined {
  const part = partOf(content)
  if (part === undefined) return undefined
  return part.filename === undefined
    ? { artifactId, parts: [part] }
    : { artifactId, name: part.filename, parts: [part] }
}

function partOf(content: Unchecked<ContentBlock>): Part | undefined {
  switch (content.type) {
    case 'image':
    case 'audio':
      return bytesPart(content.data, content)
    case 'resource':
      return resourcePart(unchecked(content.resource))
    default:
      return undefined
  }
}

function resourcePart(resource: Unchecked<EmbeddedResourceResource>): Part | undefined {
  const { text, blob } = resource
  return typeof text === 'string' ? { text, ...namesOf(resource) } : bytesPart(blob, resource)
}

function bytesPart(data: unknown, source: NameSource): Part | undefined {
  if (typeof data !== 'string' || !/^[A-Za-z0-9+/_-]*={0,2}$/.test(data)) return undefined
  return { raw: data, ...namesOf(source) }
}

type NameSource = Pick<Unchecked<EmbeddedResourceResource>, 'mimeType' | 'uri'>

function namesOf({ mimeType, uri }: NameSource): Part {
  const filename = typeof uri === 'string' ? uri.split('/').at(-1) : undefined
  return {
    ...(typeof mimeType === 'string' ? { mediaType: mimeType } : {}),
    ...(filename ? { filename: shownFileName(filename) } : {}),
  }
}
