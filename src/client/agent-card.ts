/**
 * A remote agent's card: its URL, and the choice of one of its interfaces. JSON-RPC of 1.0 or 0.3 comes first, then the
 * REST binding of 1.0. Among several of one kind the first wins, because the card lists them in the agent's order of
 * preference.
 */
import { MoleculeError } from '../errors.ts'
import type { ProtocolVersion } from '../protocol/envelope.ts'
import { isJsonObject, type JsonObject } from '../protocol/json.ts'
import { trimEndOf } from '../trim-end.ts'

const CARD_PATH = '.well-known/agent-card.json'

export interface AgentInterface {
  readonly url: string
  readonly version: ProtocolVersion
  readonly binding: 'JSONRPC' | 'HTTP+JSON'
  readonly tenant?: string
  readonly streaming: boolean
  /** The agent's name in its card. */
  readonly name: string
}

/** The card's URL below a base URL. The URL of a JSON file is the card's own URL. */
export function cardUrl(given: string): string {
  const url = new URL(given)
  if (url.pathname.endsWith('.json')) return url.href
  url.pathname = `${trimEndOf(url.pathname, '/')}/${CARD_PATH}`
  return url.href
}

/** Throws `bad_config` for a card without a supported interface. */
export function readCard(card: unknown, foundAt: string): AgentInterface {
  if (!isJsonObject(card)) throw new MoleculeError('bad_config', `the answer of ${foundAt} is not an agent card`)
  const offered = [...interfacesOf(card), ...legacyInterfacesOf(card)]
  const chosen = offered.find(isJsonRpc) ?? offered.find(isRest)
  if (chosen?.version === undefined) {
    const found = offered.map(({ binding, versionText }) => `${binding} ${versionText}`).join(', ') || 'none'
    const message = `the agent card at ${foundAt} offers neither JSON-RPC of A2A 1.0 or 0.3 nor HTTP+JSON of 1.0; it offers: ${found}`
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
  readonly versionText: string
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

/** 0.3: the card itself is the first interface; `additionalInterfaces` lists the others. */
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
  const versionText = String(more['protocolVersion'] ?? '')
  return {
    url: String(url ?? ''),
    binding: String(binding ?? ''),
    versionText,
    version: versionOf(versionText),
    tenant: String(more['tenant'] ?? ''),
  }
}

function versionOf(text: string): ProtocolVersion | undefined {
  if (/^1(\.|$)/.test(text)) return '1.0'
  return /^0\.[23](\.|$)/.test(text) ? '0.3' : undefined
}

/** Prevents sending messages and our token in the clear: a card from https must not name an http URL. */
function interfaceUrl(given: string, foundAt: string): string {
  if (!URL.canParse(given, foundAt)) throw new MoleculeError('bad_config', `the card at ${foundAt} has an invalid URL`)
  const url = new URL(given, foundAt)
  if (url.protocol === 'https:' || (url.protocol === 'http:' && foundAt.startsWith('http:'))) return url.href
  throw new MoleculeError('bad_config', `the card at ${foundAt} names a ${url.protocol}// URL, which is not safe`)
}
