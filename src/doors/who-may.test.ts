/**
 * The table of who may do what covers every door, and `docs/security.md` prints it: `UPDATE_DOCS=1 npm test --
 * src/doors/who-may.test.ts` writes it. `test/hostile/who-may.test.ts` walks the table on a running platform.
 */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { ACTIONS, type Action, CHAT_ROLES, chatRolesOf, rolesOf, WHO_MAY } from '../api/who-may.ts'
import { TOKEN_ROLES } from '../workspaces/tokens.ts'
import { CHAT_COMMANDS } from './chat/commands/commands.ts'
import { A2A_ACTIONS } from './http/a2a/methods.ts'
import { ROUTES } from './http/app.ts'
import { TOOLS } from './mcp/mcp.ts'

test('PL-12 every route, A2A method, MCP tool and chat command names an action of the table, and no action is unused', () => {
  const named = [
    ...ROUTES.map(({ access }) => access).filter((access) => access !== 'open' && access !== 'a2a'),
    ...A2A_ACTIONS.values(),
    ...TOOLS.map(({ access }) => access),
    ...CHAT_COMMANDS.flatMap(({ action }) => [action(''), action('an argument')]),
  ]
  // What a body decides: the role of a pairing.
  const inHandlers: readonly Action[] = ['pairing.owner']
  assert.deepEqual([...new Set([...named, ...inHandlers])].sort(), [...ACTIONS].sort())
})

test('PL-12 a tool of the MCP server is for every role that may use the server', () => {
  for (const { name, access } of TOOLS)
    for (const role of rolesOf('mcp.use')) assert.ok(rolesOf(access).includes(role), `${role} ${name}`)
})

test('PL-12 GW-7 every command of a chat has a name of its own, and a stranger may only read the help', () => {
  assert.equal(new Set(CHAT_COMMANDS.map(({ name }) => name)).size, CHAT_COMMANDS.length)
  assert.deepEqual(
    ACTIONS.filter((action) => chatRolesOf(action).includes('stranger')),
    ['platform.read'],
  )
})

const BEGIN = 'npm test -- src/doors/who-may.test.ts writes it. -->\n'
const END = '<!-- The end of the table. -->\n'

test('PL-12 docs/security.md prints the table of who may do what', () => {
  const file = new URL('../../docs/security.md', import.meta.url)
  const page = readFileSync(file, 'utf8')
  const [before = '', after = ''] = [page.split(BEGIN)[0], page.split(END)[1]]
  const expected = `${before}${BEGIN}\n${table()}\n${END}${after}`
  if (process.env['UPDATE_DOCS'] === '1') writeFileSync(file, expected)
  else assert.ok(page === expected, 'docs/security.md is old: write it with UPDATE_DOCS=1')
})

/** Role by action as Markdown, with columns of one width. */
function table(): string {
  const chatNames = { owner: 'chat: owner', user: 'chat: person', stranger: 'chat: stranger' }
  const rows = [
    ['action', 'what it is', ...TOKEN_ROLES, ...CHAT_ROLES.map((role) => chatNames[role])],
    ...ACTIONS.map((action) => [
      ...[`\`${action}\``, WHO_MAY[action].does],
      ...TOKEN_ROLES.map((role) => (rolesOf(action).includes(role) ? 'yes' : '')),
      ...CHAT_ROLES.map((role) => (chatRolesOf(action).includes(role) ? 'yes' : '')),
    ]),
  ]
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(' | ')} |\n`
  const [head = [], ...body] = rows
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...body.map(line)].join('')
}
