import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cardUrl, readCard } from './agent-card.ts'

const AT = 'https://a.test/card.json'

const modern = (more: object = {}) => ({
  supportedInterfaces: [{ url: '/rpc', protocolBinding: 'JSONRPC', protocolVersion: '1.0', ...more }],
})

test('AG-11 an interface is read with all its fields; without a name, a tenant and capabilities they are empty', () => {
  const plain = { url: 'https://a.test/rpc', version: '1.0', binding: 'JSONRPC', streaming: false, name: '' }
  assert.deepEqual(readCard(modern(), AT), plain)
  assert.deepEqual(readCard({ name: 7, capabilities: { streaming: 'yes' }, ...modern() }, AT), plain)
  assert.deepEqual(readCard({ name: 'n', capabilities: { streaming: true }, ...modern({ tenant: 't' }) }, AT), {
    ...plain,
    streaming: true,
    name: 'n',
    tenant: 't',
  })
  assert.deepEqual(readCard(modern({ protocolBinding: 'HTTP+JSON', url: 'https://b.test/rest' }), AT), {
    ...plain,
    url: 'https://b.test/rest',
    binding: 'HTTP+JSON',
  })
})

test('AG-11 a card of 0.3 names its own URL first, and its transport is JSON-RPC unless it says otherwise', () => {
  const old = { name: 'n', url: '/old', protocolVersion: '0.3.0' }
  const plain = { url: 'https://a.test/old', version: '0.3', binding: 'JSONRPC', streaming: false, name: 'n' }
  assert.deepEqual(readCard(old, AT), plain)
  assert.deepEqual(readCard({ ...old, preferredTransport: 'JSONRPC' }, AT), plain)
  const more = ['GRPC', 'JSONRPC', 'JSONRPC'].map((transport, index) => ({ url: `/${index}`, transport }))
  assert.deepEqual(readCard({ ...old, preferredTransport: 'HTTP+JSON', additionalInterfaces: more }, AT), {
    ...plain,
    url: 'https://a.test/1',
  })
  // Without its own URL a card is not one of 0.3, whatever else it lists.
  const { url: _url, ...nameless } = old
  assert.throws(() => readCard({ ...nameless, additionalInterfaces: more }, AT), { message: /it offers: none$/ })
})

test('AG-11 a card without a supported interface is refused with all that it offers', () => {
  const refused = (card: object, offers: string) =>
    assert.throws(() => readCard(card, AT), {
      code: 'bad_config',
      message: `the agent card at ${AT} offers neither JSON-RPC of A2A 1.0 or 0.3 nor HTTP+JSON of 1.0; it offers: ${offers}`,
    })
  refused({}, 'none')
  refused({ supportedInterfaces: 'x', additionalInterfaces: 'x' }, 'none')
  refused({ url: '/', preferredTransport: 'HTTP+JSON', protocolVersion: '0.3.0' }, 'HTTP+JSON 0.3.0')
  const supportedInterfaces = [{ url: '/' }, { protocolBinding: 'GRPC', protocolVersion: '1.0' }, 7]
  refused({ supportedInterfaces, url: '/', protocolVersion: '9' }, ' , GRPC 1.0, JSONRPC 9')
})

test('AG-11 every 1.x is called as 1.0; 0.2 and 0.3 are called as 0.3; no other version is called', () => {
  const versionOf = (protocolVersion: string) => {
    try {
      return readCard(modern({ protocolVersion }), AT).version
    } catch {
      return undefined
    }
  }
  const versions = ['1', '1.0', '1.7.2', '0.2', '0.2.6', '0.3', '0.3.1', '10', '0.1', '0.4', '0.30', '2.0', '']
  assert.deepEqual(versions.map(versionOf), [
    ...['1.0', '1.0', '1.0', '0.3', '0.3', '0.3', '0.3'],
    ...[undefined, undefined, undefined, undefined, undefined, undefined],
  ])
})

test('AG-11 a card names http or https, http only if the card itself came over http, and a usable URL', () => {
  const urlOf = (url: string | undefined, foundAt: string) => readCard(modern({ url }), foundAt).url
  assert.equal(urlOf('https://b.test/rpc', 'http://a.test/card.json'), 'https://b.test/rpc')
  assert.equal(urlOf('http://b.test/rpc', 'http://a.test/card.json'), 'http://b.test/rpc')
  assert.equal(urlOf('https://b.test/rpc', AT), 'https://b.test/rpc')
  // Without a URL of its own, an interface is at the URL of the card.
  assert.equal(urlOf(undefined, AT), AT)
  for (const [url, foundAt, scheme] of [
    ['http://b.test/rpc', AT, 'http:'],
    ['ftp://b.test/rpc', 'http://a.test/card.json', 'ftp:'],
  ] as const)
    assert.throws(() => urlOf(url, foundAt), {
      code: 'bad_config',
      message: `the card at ${foundAt} names a ${scheme}// URL, which is not safe`,
    })
  assert.throws(() => urlOf('http://', AT), { code: 'bad_config', message: `the card at ${AT} has an invalid URL` })
})

test('the card is below a base URL, and a JSON file is the card itself', () => {
  assert.equal(cardUrl('https://a.test'), 'https://a.test/.well-known/agent-card.json')
  assert.equal(cardUrl('https://a.test/agents/one/'), 'https://a.test/agents/one/.well-known/agent-card.json')
  assert.equal(cardUrl('https://a.test/cards/one.json?v=2'), 'https://a.test/cards/one.json?v=2')
})

test('AG-11 the first JSON-RPC interface of a card is chosen, else REST of 1.0; others are refused by name', () => {
  const at = 'https://a.test/card.json'
  const grpc = { url: 'https://a.test/g', protocolBinding: 'GRPC', protocolVersion: '1.0' }
  const rpc = { url: '/rpc', protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: 't' }
  const chosen = readCard({ name: 'x', supportedInterfaces: [grpc, rpc] }, at)
  const expected = { url: 'https://a.test/rpc', version: '1.0', binding: 'JSONRPC', streaming: false, name: 'x' }
  assert.deepEqual(chosen, { ...expected, tenant: 't' })
  const rest = { url: '/rest', protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' }
  assert.equal(readCard({ supportedInterfaces: [rest, rpc] }, at).binding, 'JSONRPC')
  assert.equal(readCard({ supportedInterfaces: [grpc, rest] }, at).binding, 'HTTP+JSON')
  const old = { url: 'https://a.test/rest', preferredTransport: 'HTTP+JSON', protocolVersion: '0.3.0' }
  const additionalInterfaces = [{ url: 'https://a.test/old', transport: 'JSONRPC' }]
  assert.equal(readCard({ ...old, additionalInterfaces }, at).url, 'https://a.test/old')
  assert.equal(readCard({ ...old, additionalInterfaces }, at).version, '0.3')
  // A card with both versions is called in the newer one.
  assert.equal(readCard({ ...old, additionalInterfaces, supportedInterfaces: [rpc] }, at).version, '1.0')
  assert.throws(() => readCard({ supportedInterfaces: [grpc] }, at), /neither JSON-RPC.*GRPC 1\.0/)
  assert.throws(
    () => readCard({ url: 'https://a.test', protocolVersion: '2.0', preferredTransport: 'JSONRPC' }, at),
    /neither JSON-RPC/,
  )
  assert.throws(() => readCard('a page', at), /not an agent card/)
  assert.throws(() => readCard(modern({ url: 'http://a.test/rpc' }), at), /not safe/)
})
