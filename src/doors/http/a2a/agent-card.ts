/**
 * The agent card of a workspace, which a client reads before its first message. It has two forms: plain 1.0, and for all
 * other clients a hybrid. A 0.3 client understands the top-level fields of the hybrid; a 1.0 client prefers its
 * `supportedInterfaces`. The card is public. The extended card needs a token.
 */
import type { Json, Metadata } from '../../../protocol/a2a.ts'
import type { ProtocolVersion } from '../../../protocol/envelope.ts'
import { publicReason } from '../../../views/public-reason.ts'
import type { Workspace, WorkspaceLoad } from '../../../workspaces/workspace.ts'

export interface AgentCapabilities {
  readonly streaming: boolean
  readonly pushNotifications: boolean
  readonly extendedAgentCard: boolean
}

/** What a card contains besides its workspace. */
export interface AgentCardOptions {
  /** `http://host:port` of this platform, as the client sees it. */
  readonly base: string
  readonly version: string
  readonly capabilities: AgentCapabilities
  /** The port of the gRPC door; undefined without one. */
  readonly grpcPort: number | undefined
}

export function agentCard(workspace: Workspace, options: AgentCardOptions, version: ProtocolVersion): Metadata {
  const card = plainCard(workspace, options)
  return version === '1.0' ? card : hybridCard(card, options, a2aUrl(workspace, options))
}

/** The card with details for callers with a token, in an extension that clients may ignore. */
export function extendedCard(
  workspace: Workspace & WorkspaceLoad,
  options: AgentCardOptions,
  version: ProtocolVersion,
): Metadata {
  const card = agentCard(workspace, options, version)
  const extension = { uri: WORKSPACE_EXTENSION, required: false, params: liveDetails(workspace) }
  return { ...card, capabilities: { ...(card['capabilities'] as Metadata), extensions: [extension] } }
}

const WORKSPACE_EXTENSION = 'urn:molecule:workspace'
const MEDIA_TYPES = ['text/plain', 'application/json', 'application/octet-stream']

const a2aUrl = ({ id }: Workspace, { base }: AgentCardOptions): string => `${base}/workspaces/${id}/a2a`

function plainCard(workspace: Workspace, options: AgentCardOptions): Record<string, Json> {
  const { name, role } = workspace
  const url = a2aUrl(workspace, options)
  const description = role === '' ? `The agent ${name}` : role
  const { streaming, pushNotifications, extendedAgentCard } = options.capabilities
  return {
    name,
    description,
    version: options.version,
    supportedInterfaces: [
      { url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
      { url, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
      ...grpcInterface(workspace, options),
      { url, protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
    ],
    capabilities: { streaming, pushNotifications, extendedAgentCard },
    securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: 'Bearer', description: BEARER_DESCRIPTION } } },
    securityRequirements: [{ schemes: { bearer: { list: [] } } }],
    defaultInputModes: MEDIA_TYPES,
    defaultOutputModes: MEDIA_TYPES,
    skills: [{ id: 'talk', name: `Talk to ${name}`, description, tags: ['chat'] }],
  }
}

/** gRPC clients connect to `host:port`, and name the workspace as the tenant. */
function grpcInterface({ id: tenant }: Workspace, { base, grpcPort }: AgentCardOptions): Json[] {
  if (grpcPort === undefined) return []
  const url = `${new URL(base).hostname}:${grpcPort}`
  return [{ url, protocolBinding: 'GRPC', protocolVersion: '1.0', tenant }]
}

const BEARER_DESCRIPTION = 'A token of this platform'

function hybridCard(card: Record<string, Json>, { capabilities }: AgentCardOptions, url: string): Metadata {
  const bearer = { type: 'http', scheme: 'bearer', httpAuthSecurityScheme: { scheme: 'Bearer' } }
  return {
    ...card,
    protocolVersion: '0.3.0',
    url,
    preferredTransport: 'JSONRPC',
    additionalInterfaces: [{ url, transport: 'JSONRPC' }],
    supportsAuthenticatedExtendedCard: capabilities.extendedAgentCard,
    securitySchemes: { bearer: { ...bearer, description: BEARER_DESCRIPTION } },
    security: [{ bearer: [] }],
  }
}

function liveDetails({ id, runtime, model, status, statusReason, queueDepth, running }: Workspace & WorkspaceLoad) {
  return {
    workspace_id: id,
    runtime,
    ...(model === undefined ? {} : { model }),
    status,
    ...(statusReason === undefined ? {} : { status_reason: publicReason(statusReason) }),
    queue_depth: queueDepth,
    running,
  }
}
