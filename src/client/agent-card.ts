/**
 * A remote agent's card: where it is found, and which of the interfaces it offers we speak to: JSON-RPC of 1.0 or 0.3,
 * and where there is none the REST binding of 1.0. Of several of one kind the card's own order decides, as it is the
 * agent's order of preference.
 */
import { MoleculeError } from '../errors.ts'
import type { ProtocolVersion } from '../protocol/envelope.ts'
import { isJsonObject, type JsonObject } from '../protocol/json.ts'

const CARD_PATH = '.well-known/agent-card.json'

export interface AgentInterface {
  readonly url: string
  readonly version: ProtocolVersion
  readonly binding: 'JSONRPC' | 'HTTP+JSON'
  readonly tenant?: string
  readonly streaming: boolean
  /** What the agent calls itself. */
  readonly name: string
}

/** The card of a base URL; a URL of a JSON file is the card's own. */
export function cardUrl(given: string): string {
  const url = new URL(given)
  if (url.pathname.endsWith('.json')) return url.href
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/${CARD_PATH}`
  return url.href
}

/** Throws `bad_config` for a card without an interface that we speak. */
export function readCard(card: unknown, foundAt: string): AgentInterface {
  if (!isJsonObject(card)) throw new MoleculeError('bad_config', `what ${foundAt} answers is no agent card`)
  const offered = [...interfacesOf(card), ...legacyInterfacesOf(card)]
  const chosen = offered.find(isJsonRpc) ?? offered.find(isRest)
  if (chosen?.version === undefined) {
    const seen = offered.map(({ binding, given }) => `${binding} ${given}`).join(', ') || 'none'
    const message = `the agent card at ${foundAt} offers neither JSON-RPC of A2A 1.0 or 0.3 nor HTTP+JSON of 1.0, only: ${seen}`
    throw new MoleculeError('bad_config', message)
  }
  const url = interfaceUrl(chosen.url, foundAt)
  const { capabilities, name } = card
  return {
    url,
    version: chosen.version,
    binding: isRest(chosen) ? 'HTTP+JSON' : 'JSONRPC',
    streaming: isJsonObject(capabilities) && capabilities['streaming'] === true,
    name: typeof name === 'string' ? name : '',
    ...(chosen.tenant !== '' && { tenant: chosen.tenant }),
  }
}

interface OfferedInterface {
  readonly url: string
  readonly binding: string
  readonly given: string
  readonly version: ProtocolVersion | undefined
  readonly tenant: string
}

const isJsonRpc = ({ binding, version }: OfferedInterface): boolean => binding === 'JSONRPC' && version !== undefined
const isRest = ({ binding, version }: OfferedInterface): boolean => binding === 'HTTP+JSON' && version === '1.0'

/** 1.0: `supportedInterfaces`. */
function interfacesOf({ supportedInterfaces }: JsonObject): OfferedInterface[] {
  const listed = Array.isArray(supportedInterfaces) ? supportedInterfaces.filter(isJsonObject) : []
  return listed.map((each) => toOfferedInterface(each['url'], each['protocolBinding'], each))
}

/** 0.3: the card itself is the first interface, others are additional. */
function legacyInterfacesOf(card: JsonObject): OfferedInterface[] {
  if (typeof card['url'] !== 'string') return []
  const { protocolVersion, additionalInterfaces } = card
  const more = Array.isArray(additionalInterfaces) ? additionalInterfaces.filter(isJsonObject) : []
  return [
    toOfferedInterface(card['url'], card['preferredTransport'] ?? 'JSONRPC', { protocolVersion }),
    ...more.map((each) => toOfferedInterface(each['url'], each['transport'], { protocolVersion })),
  ]
}

function toOfferedInterface(url: unknown, binding: unknown, more: JsonObject): OfferedInterface {
  const given = String(more['protocolVersion'] ?? '')
  return {
    url: String(url ?? ''),
    binding: String(binding ?? ''),
    given,
    version: versionOf(given),
    tenant: String(more['tenant'] ?? ''),
  }
}

function versionOf(given: string): ProtocolVersion | undefined {
  if (/^1(\.|$)/.test(given)) return '1.0'
  return /^0\.[23](\.|$)/.test(given) ? '0.3' : undefined
}

/** A card that came over https must not send what we say, and our token, in the clear. */
function interfaceUrl(given: string, foundAt: string): string {
  if (!URL.canParse(given, foundAt)) throw new MoleculeError('bad_config', `the card at ${foundAt} has a bad URL`)
  const url = new URL(given, foundAt)
  if (url.protocol === 'https:' || (url.protocol === 'http:' && foundAt.startsWith('http:'))) return url.href
  throw new MoleculeError('bad_config', `the card at ${foundAt} leads to ${url.protocol}//, which is not safe`)
}
