/** The made-up workspaces of `screenshots.ts`: a small team in all states, and many of them. Its claude is the fake one. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import {
  CLAUDE_LOGGED_IN,
  createFakeAgents,
  createFakeProgram,
  type FakeAgentName,
  writeFakeAgent,
} from '../test/fakes/agents/fake-program.ts'
import type { PlatformUnderTest } from '../test/harness/platform.ts'
import { sendWithoutWaiting } from '../test/harness/platform.ts'
import { waitUntil } from '../test/harness/wait.ts'

const ANSWER = `Yes, down to \`0038\`. \`0037\` drops a column that \`0036\` still reads, so I would not go further without this:

\`\`\`sql
alter table deliveries
  add column receipt text;
\`\`\`

Two things to decide:

1. keep the old column for one release, or
2. copy the data first.`

const AGENTS: readonly FakeAgentName[] = ['claude', 'codex', 'gemini']

/** The environment of a machine with agents: claude is logged in, the others are not. */
export function withAgents(): Record<string, string> {
  const { dir } = createFakeProgram('claude')
  const bin = join(dir, 'bin')
  mkdirSync(bin)
  for (const agent of AGENTS) writeFakeAgent(join(bin, agent), { agent, scenario: 'echo', dir })
  return { ...CLAUDE_LOGGED_IN, PATH: `${bin}:${process.env['PATH']}` }
}

type Create = (name: string, more?: Record<string, unknown>) => Promise<string>

/** The platform, where a refusal is an error: a picture of a half-made team is of no use. */
const strict = (platform: PlatformUnderTest): PlatformUnderTest => ({
  ...platform,
  async request(method, path, body) {
    const response = await platform.request(method, path, body)
    if (response.status >= 400) throw new Error(`${method} ${path}: ${JSON.stringify(response.body)}`)
    return response
  },
})

const creator =
  (platform: PlatformUnderTest): Create =>
  async (name, more = {}) =>
    (await platform.request('POST', '/workspaces', { name, runtime: 'mock', ...more })).body.id

/** A parent that waits for a child, and children that work, failed, are idle, offline and paused. */
export async function seedTeam(given: PlatformUnderTest): Promise<{ readonly ada: string; readonly mira: string }> {
  const platform = strict(given)
  const create = creator(platform)
  const conductor = await create('Conductor', {
    runtime: 'exec',
    role: 'Plans the release, hands out the work',
    runtime_config: { cmd: 'a2a delegate Ada "run the full suite on PostgreSQL"', pass_meta: 'true', timeout: '1h' },
  })
  const below = { parent_id: conductor }
  const ada = await create('Ada', {
    ...below,
    role: 'Backend engineer',
    model: 'gpt-5.3-codex',
    runtime_config: { reply: ANSWER, usage: 'true', cost: '0.03' },
  })
  const contextId = 'release'
  await platform.send(ada, 'Do the new migrations run backwards too?', { contextId })
  await platform.request('PATCH', `/workspaces/${ada}`, { runtime_config: { delay: '1h' } })
  const message = {
    messageId: 'then',
    role: 'ROLE_USER',
    contextId,
    parts: [{ text: 'Then add that and run the suite.' }],
  }
  await platform.rpc(ada, 'SendMessage', { message, configuration: { returnImmediately: true } })
  await waitUntil(async () => (await platform.request('GET', `/workspaces/${ada}`)).body.running === 1)
  const scout = await create('Scout', {
    ...below,
    role: 'Reads the docs so you need not',
    runtime_config: { reply: 'Read 14 pages: nothing about `receipt`.', usage: 'true', cost: '0.004' },
  })
  await platform.send(scout, 'What do the docs say about receipts?')
  await platform.request('PATCH', `/workspaces/${scout}`, { runtime_config: { max_cost_usd_per_day: 0.004 } })
  await sendWithoutWaiting(platform, scout, 'And what do they say about refunds?')
  const watch = await create('Night watch', {
    ...below,
    role: 'Checks the backups at 03:00',
    runtime: 'exec',
    max_attempts: 1,
    runtime_config: { cmd: 'echo "no space left for the archive" >&2; exit 3' },
  })
  await platform.send(watch, 'Check the backups')
  await create('Laptop of Mira', { parent_id: ada, runtime: 'external', role: 'Bridge, opencode' })
  const drill = await create('Rollback drill', {
    role: 'Rehearses the worst day',
    runtime: 'exec',
    runtime_config: { cmd: 'cat' },
  })
  await platform.request('POST', `/workspaces/${drill}/pause`)
  await sendWithoutWaiting(platform, conductor, 'Release 2.4 on Thursday')
  await waitUntil(async () => (await platform.request('GET', `/workspaces/${ada}`)).body.queue_depth === 1)
  await create('Translation and proofreading of the whole handbook', {
    role: 'Reads each chapter twice, compares it with the product, and lists every sentence that is no longer true',
  })
  await fillPanel(platform, ada)
  return { ada, mira: await seedMira(platform, create) }
}

/** Memories, a schedule and a token. */
async function fillPanel(platform: PlatformUnderTest, id: string): Promise<void> {
  for (const text of [
    'Migrations are numbered by hand: take the next free number, and never edit one that is released.',
    'The suite needs PostgreSQL 18; the tests start it by themselves.',
    'Mira prefers small commits with the reason in the body.',
  ])
    await platform.request('POST', `/workspaces/${id}/memories`, { text })
  const schedule = { name: 'Nightly suite', cron: '0 3 * * *', time_zone: 'Europe/Berlin', text: 'Run the whole suite' }
  await platform.request('POST', `/workspaces/${id}/schedules`, schedule)
  await platform.request('POST', '/tokens', { name: 'build server', role: 'caller', workspaces: [id] })
}

/** An agent that changed a file, has a rule, and now asks for a permission. */
async function seedMira(platform: PlatformUnderTest, create: Create): Promise<string> {
  const agents = createFakeAgents()
  const agent = (scenario: string) => ({ bin: agents('claude', scenario) })
  const mira = await create('Mira', {
    runtime: 'claude-code',
    role: 'Reviews what the others change',
    runtime_config: agent('edit'),
  })
  const contextId = 'review'
  await platform.send(mira, 'four', { contextId })
  await platform.request('PATCH', `/workspaces/${mira}`, { runtime_config: agent('ask') })
  const task = await platform.send(mira, 'npm test', { contextId })
  const [pending] = (await platform.request('GET', `/pending?workspace_id=${mira}`)).body.pending
  const answer = { decision: 'allow', always: true, pattern: 'npm test *' }
  await platform.request('POST', `/pending/${encodeURIComponent(pending.id)}`, answer)
  await waitUntil(
    async () =>
      (await platform.rpc(mira, 'GetTask', { id: task.id })).body.result.status.state === 'TASK_STATE_COMPLETED',
  )
  await platform.send(mira, 'git push --force-with-lease origin release/2.4', { contextId })
  return mira
}

const TEAMS: Readonly<Record<string, readonly string[]>> = {
  Conductor: ['Ada', 'Scout', 'Proofreader', 'Bench', 'Release notes', 'Changelog', 'Tagger', 'Security review'],
  'Support desk': ['Inbox sorter', 'Refunds', 'Shipping questions', 'German', 'French', 'Spanish', 'Escalations'],
  'Data platform': [
    'Warehouse loader',
    'Schema watch',
    'Quality checks for the customer tables',
    'Forecast',
    'Anomalies',
  ],
  Site: ['Front page', 'Checkout', 'Search', 'Images', 'Accessibility', 'Copy', 'Load test', 'Uptime', 'Browser farm'],
}
const SINGLE = ['Research', 'Calendar', 'Music', 'Notes', 'Reading list', 'Home lab', 'Weather', 'Recipes', 'Photos']

export async function seedMany(given: PlatformUnderTest): Promise<void> {
  const platform = strict(given)
  const create = creator(platform)
  const busy = { runtime_config: { delay: '1h' } }
  let made = 0
  for (const [parent, children] of Object.entries(TEAMS)) {
    const parent_id = await create(parent)
    for (const child of children) {
      made += 1
      const id = await create(child, { parent_id, ...(made % 6 === 1 ? busy : {}) })
      if (made % 6 === 1) await sendWithoutWaiting(platform, id, 'running the tests of the last change')
      if (made % 11 === 5) await platform.request('POST', `/workspaces/${id}/pause`)
    }
  }
  for (const name of SINGLE) await create(name, name === 'Home lab' ? { runtime: 'external' } : {})
}
