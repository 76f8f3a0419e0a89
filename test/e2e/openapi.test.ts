/** The API document of a real platform against what that platform answers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type PlatformUnderTest, withPlatform } from '../harness/platform.ts'

// biome-ignore lint/suspicious/noExplicitAny: the test walks a document of any shape
type Document = any

test(
  'PL-10 the API document names the address of the platform, and the values that it accepts',
  withPlatform(async (platform) => {
    const document = await readDocument(platform)
    assert.deepEqual(document.servers, [{ url: platform.url }])
    const { post_workspaces, patch_workspaces_id, post_channels, JsonRpcRequest } = document.components.schemas
    const runtimes: string[] = post_workspaces.properties.runtime.enum
    assert.ok(runtimes.includes('exec') && runtimes.includes('external'), runtimes.join())
    assert.deepEqual(patch_workspaces_id.properties.runtime.enum, runtimes)
    for (const runtime of [...runtimes, 'unknown']) {
      const { status, body } = await platform.request('POST', '/workspaces', { name: runtime, runtime })
      const isUnknown = status === 400 && /unknown backend/.test(body.error.message)
      assert.equal(isUnknown, runtime === 'unknown', `${runtime}: ${JSON.stringify(body)}`)
    }
    const kinds: string[] = post_channels.properties.kind.enum
    const channel = { kind: 'unknown', token: 'x', name: 'x' }
    const refused = await platform.request('POST', '/channels', channel)
    assert.deepEqual([refused.status, kinds.length > 0], [400, true])
    for (const kind of kinds) assert.ok(refused.body.error.message.includes(kind), kind)
    const id = await platform.exec('cat')
    for (const method of [...JsonRpcRequest.properties.method.enum, 'message/sent']) {
      const { body } = await platform.rpc(id, method, {})
      assert.equal(body.error?.code === -32_601, method === 'message/sent', method)
    }
  }),
)

test(
  'PL-10 an error of each A2A binding has the media type and the form that the API document says',
  withPlatform(async (platform) => {
    const document = await readDocument(platform)
    const id = await platform.exec('cat')
    const url = `${platform.url}/workspaces/${id}/a2a`
    const token = { Authorization: `Bearer ${platform.token}` }
    const calls = [
      { path: '', init: { method: 'POST', headers: token, body: '{"jsonrpc":"2.0","id":1,"method":"GetTask"}' } },
      { path: '', init: { method: 'POST', body: '{}' } },
      { path: '/tasks/{task}', at: '/tasks/nothing', init: { headers: token } },
      { path: '/tasks/{task}', at: '/tasks/nothing', init: {} },
      { path: '/tasks/{task}', at: '/tasks/x', init: { headers: { ...token, Accept: 'application/json' } } },
      { path: '/message:send', init: { method: 'POST', headers: token, body: '[]' } },
    ]
    for (const { path, at = path, init } of calls) {
      const response = await fetch(`${url}${at}`, init)
      const operation = document.paths[`/workspaces/{id}/a2a${path}`][(init.method ?? 'GET').toLowerCase()]
      const [, name] = /^#\/components\/responses\/(\w+)$/.exec(operation.responses.default.$ref) ?? []
      const { content } = document.components.responses[String(name)]
      const type = String(response.headers.get('content-type'))
      assert.ok(type in content, `${path} is ${type}`)
      const [schema] = /\w+$/.exec(content[type].schema.$ref) ?? []
      checkForm(document, document.components.schemas[String(schema)], await response.json())
    }
  }),
)

async function readDocument(platform: PlatformUnderTest): Promise<Document> {
  const { status, body } = await platform.request('GET', '/openapi.json')
  assert.equal(status, 200)
  return body
}

/** Compares types, constants, required members and unknown members with the schema. */
function checkForm(document: Document, schema: Document, value: unknown): void {
  const about = `${JSON.stringify(value)} against ${JSON.stringify(schema)}`
  if (schema.$ref !== undefined) {
    checkForm(document, document.components.schemas[schema.$ref.split('/').at(-1)], value)
  } else if (schema.type === 'object') {
    const given = Object(value) as Record<string, unknown>
    for (const name of schema.required ?? []) assert.ok(name in given, `${name}: ${about}`)
    for (const [name, member] of Object.entries(given)) {
      const known = schema.properties?.[name] ?? schema.additionalProperties
      assert.ok(known, `${name}: ${about}`)
      checkForm(document, known, member)
    }
  } else if (schema.type === 'array') {
    assert.ok(Array.isArray(value), about)
    for (const item of value) checkForm(document, schema.items, item)
  } else if (schema.const !== undefined) assert.equal(value, schema.const)
  else if (schema.type !== undefined)
    assert.ok(schema.type === 'integer' ? Number.isInteger(value) : typeof value === schema.type, about)
}
