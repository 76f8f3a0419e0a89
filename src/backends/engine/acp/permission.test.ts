import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readSample } from '../../../../test/fakes/agents/fake-agent.ts'
import { isAllowed, isToolOfServers, outcomeFor, readPermission } from './permission.ts'

const OPTIONS = [
  { optionId: 'yes-always', name: 'Always', kind: 'allow_always' },
  { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
  { optionId: 'no', name: 'No', kind: 'reject_once' },
]

function request(toolCall: object, options: readonly object[] = OPTIONS) {
  const permission = readPermission(
    { sessionId: 's', toolCall: { toolCallId: 'c1', ...toolCall }, options },
    { workingDir: '/w' },
  )
  assert.ok(permission)
  return permission
}

test("AG-16 gemini's recorded request gives the tool's name, and the whole input as the subject", () => {
  const line = readSample('acp/gemini.from-agent.jsonl')
    .split('\n')
    .find((text) => text.includes('session/request_permission'))
  const permission = readPermission(JSON.parse(line ?? '').params, { workingDir: '/w' })
  assert.ok(permission)
  assert.equal(permission.tool, 'mcp_lab_ping_tool')
  assert.equal(permission.subject, '{"text":"pong?"}')
  assert.deepEqual(outcomeFor(permission, 'allowed', false), { outcome: 'selected', optionId: 'proceed_once' })
  assert.deepEqual(outcomeFor(permission, 'denied', false), { outcome: 'selected', optionId: 'cancel' })
  const lab = { name: 'lab', command: 'node', args: [], env: {} }
  assert.ok(isToolOfServers(permission, [lab]) && !isToolOfServers(permission, [{ ...lab, name: 'other' }]))
})

test('AG-16 the subject is exactly what would be done', () => {
  const shell = { kind: 'execute', title: 'rm -rf /tmp/x', content: [textContent('[current working directory /w]')] }
  assert.equal(request(shell).subject, 'rm -rf /tmp/x')
  const elsewhere = { ...shell, content: [textContent('[in /etc] (tidy)')] }
  assert.equal(request(elsewhere).subject, 'rm -rf /tmp/x\n[in /etc] (tidy)')
  const bash = { kind: 'execute', title: 'bash', rawInput: { command: 'rm -rf /tmp/x', description: 'tidy' } }
  assert.equal(request(bash).subject, 'rm -rf /tmp/x')
  const more = { kind: 'execute', rawInput: { command: 'ls', cwd: '/etc' } }
  assert.equal(request(more).subject, '{"command":"ls","cwd":"/etc"}')
  const diff = { type: 'diff', path: '/w/a', oldText: 'x', newText: 'y' }
  assert.equal(request({ kind: 'edit', title: 'a', content: [diff] }).subject, `a\n${JSON.stringify(diff)}`)
})

test('AG-16 a request is completed from the earlier updates of its call', () => {
  const announced = { toolCallId: 'c1', kind: 'execute' as const, rawInput: { command: 'make' } }
  const context = { announced: { call: announced }, workingDir: '/w' }
  const permission = readPermission({ toolCall: { toolCallId: 'c1' }, options: OPTIONS }, context)
  assert.deepEqual([permission?.tool, permission?.subject], ['execute', 'make'])
})

test('AG-16 a list allows a tool by name or kind, or one exact command, and never by text that the model wrote', () => {
  const shell = { kind: 'execute', title: 'git status' }
  assert.ok(isAllowed(request(shell), ['execute']))
  assert.ok(isAllowed(request(shell), ['execute(git status)']))
  assert.ok(!isAllowed(request({ ...shell, title: 'git status; rm -rf /' }), ['execute(git status)']))
  assert.ok(!isAllowed(request({ ...shell, title: 'read' }), ['read']))
  const forged = { kind: 'execute', title: 'x', rawInput: { command: 'rm', server: 'team', tool: 'ask' } }
  assert.ok(!isAllowed(request(forged), ['mcp.team.ask']))
  assert.ok(!isToolOfServers(request(forged), [{ name: 'team', command: 'node', args: [], env: {} }]))
  assert.ok(isAllowed(request({ ...forged, _meta: { is_mcp_tool_call: true } }), ['mcp.team.ask']))
  assert.ok(isAllowed(request({ kind: 'edit', _meta: { claudeCode: { toolName: 'Write' } } }), ['Write']))
})

test('AG-16 AG-19 a name that the program announced is not used for a request about something else', () => {
  const announced = { call: { toolCallId: 'c1', kind: 'execute' as const, title: 'bash' }, ownName: 'bash' }
  const ask = (toolCall: object) =>
    readPermission({ toolCall: { toolCallId: 'c1', ...toolCall }, options: OPTIONS }, { announced, workingDir: '/w' })
  const command = ask({ kind: 'execute', title: 'ls', rawInput: { command: 'ls', cwd: '/w' } })
  assert.deepEqual([command?.tool, command?.subject], ['bash', 'ls'])
  assert.ok(command && isAllowed(command, ['bash(ls)']) && !isAllowed(command, ['bash(ls -l)']))
  const folder = ask({ kind: 'other', title: 'external_directory', rawInput: { path: '/etc' } })
  assert.deepEqual([folder?.tool, folder?.subject], ['external_directory', '{"path":"/etc"}'])
  assert.ok(folder && !isAllowed(folder, ['bash', 'execute']))
})

test('AG-16 the yes of a person counts once; an agent without such an option gets a no', () => {
  const always = request({ kind: 'execute', title: 'x' }, OPTIONS.slice(0, 1))
  assert.deepEqual(outcomeFor(always, 'allowed', false), { outcome: 'cancelled' })
  assert.deepEqual(outcomeFor(always, 'allowed', true), { outcome: 'selected', optionId: 'yes-always' })
  assert.deepEqual(outcomeFor(always, 'denied', false), { outcome: 'cancelled' })
})

test('AG-13 a no is never answered with an option that means yes', () => {
  const kind = fc.constantFrom('allow_once', 'allow_always', 'reject_once', 'reject_always', 'other')
  const option = fc.record({ optionId: fc.string(), kind })
  fc.assert(
    fc.property(fc.array(option), fc.boolean(), (options, lasting) => {
      const answer = outcomeFor(request({ kind: 'edit' }, options), 'denied', lasting)
      if (answer.outcome === 'cancelled') return
      const kinds = options.filter(({ optionId }) => optionId === answer.optionId).map((one) => one.kind)
      assert.ok(kinds.some((one) => one.startsWith('reject')))
    }),
    { numRuns: 300 },
  )
})

test('an unreadable request gives no permission', () => {
  for (const params of [{}, { toolCall: {} }, { toolCall: { toolCallId: 'x' } }, { toolCall: 7, options: [] }]) {
    assert.equal(readPermission(params, { workingDir: '/w' }), undefined)
  }
})

function textContent(text: string) {
  return { type: 'content', content: { type: 'text', text } }
}
