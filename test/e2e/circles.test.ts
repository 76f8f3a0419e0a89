/** Relays that form a circle: a message that would come back is refused, and the error lists its path. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type ForwardingAgent, startForwardingAgent } from '../harness/forwarding-agent.ts'
import { type PlatformUnderTest, reasonText, startPlatform } from '../harness/platform.ts'

const here = await startPlatform()
const there = await startPlatform()
const agents: ForwardingAgent[] = []
after(async () => {
  for (const agent of agents) agent.close()
  await here.dispose()
  await there.dispose()
})

type Version = '1.0' | '0.3'

/** A relay whose target is set later: each relay of a circle must exist before the relay that points to it. */
async function relay(on: PlatformUnderTest, version: Version, target: PlatformUnderTest) {
  let url = target.url
  const agent = await startForwardingAgent(version, () => url)
  agents.push(agent)
  const headers = { Authorization: `Bearer ${target.token}` }
  const { body } = await on.request('POST', '/workspaces', {
    name: 'relay',
    runtime: 'a2a',
    url: agent.url,
    runtime_config: { headers },
    max_attempts: 1,
  })
  assert.equal(body.status, 'online', JSON.stringify(body))
  return {
    id: body.id as string,
    pointTo: (id: string) => {
      url = `${target.url}/workspaces/${id}/a2a`
    },
  }
}

for (const version of ['1.0', '0.3'] as const) {
  for (const [name, other] of [
    ['one platform', here],
    ['two platforms', there],
  ] as const) {
    test(`TW-5 AG-11 relays A -> B -> A over ${version} on ${name} are refused with the chain, and nothing stays queued`, async () => {
      const a = await relay(here, version, other)
      const b = await relay(other, version, here)
      a.pointTo(b.id)
      b.pointTo(a.id)
      const task = await here.send(a.id, 'hello')
      assert.equal(task.status.state, 'TASK_STATE_FAILED')
      assert.match(reasonText(task), new RegExp(`circle: ${a.id} -> ${b.id} -> ${a.id}`))
      for (const [platform, id] of [
        [here, a.id],
        [other, b.id],
      ] as const) {
        const { body } = await platform.request('GET', `/workspaces/${id}`)
        assert.deepEqual([body.queue_depth, body.running], [0, 0])
      }
    })
  }
}

test('TW-5 AG-11 a message passes at most five relays; the refusal lists them', async () => {
  const echo = await here.exec('cat')
  const chain = [await relay(here, '1.0', here)]
  chain[0]?.pointTo(echo)
  while (chain.length < 6) {
    const before = await relay(here, '1.0', here)
    before.pointTo(chain[0]?.id ?? '')
    chain.unshift(before)
  }
  const ids = chain.map(({ id }) => id)
  const tooLong = await here.send(ids[0] ?? '', 'hello')
  assert.equal(tooLong.status.state, 'TASK_STATE_FAILED')
  assert.match(reasonText(tooLong), new RegExp(`already passed 5 relays: ${ids.join(' -> ')}`))
  const passed = await here.send(ids[2] ?? '', 'hello')
  assert.equal(passed.artifacts?.[0]?.parts[0]?.text, 'hello')
})
