/**
 * Rules as rows: an owner's "always allow" of one workspace. `ask` looks for a rule before it asks a person, under the
 * lock of the workspace, so that a revoked rule allows nothing more.
 */
import { MoleculeError } from '../../errors.ts'
import { ulid } from '../../ids.ts'
import { type Store, sql, type Transaction, together } from '../../store/store.ts'
import type { Answerer, Rule, RulePattern, Rules } from '../owners.ts'
import { lockWorkspace } from '../rows/lock-workspace.ts'
import { type NewLogEntry, RULE_DOOR, recordChange } from '../rows/log.ts'
import { type AskedUse, coversUse } from './rule-pattern.ts'

/** Rules of one workspace. One more is refused; an ask compares its subject with each rule of its tool. */
const RULES_MAX = 500

export function createRules({
  store,
  changed,
}: {
  readonly store: Store
  readonly changed: (workspaceId: string) => void
}): Rules {
  return {
    async revoke(workspaceId, id, revoker) {
      await store.write(() => revoke(workspaceId, id, revoker), workspaceId)
      changed(workspaceId)
    },
  }
}

interface RuleRow {
  id: string
  tool: string
  scope: Rule['scope']
  pattern: string
  made_by: string
  made_principal: string
  made_door: string
}

const COLUMNS = 'r.id, r.tool, r.scope, r.pattern, r.made_by, r.made_principal, r.made_door'

const toRule = ({ id, tool, scope, pattern, ...row }: RuleRow): Rule => ({
  id,
  tool,
  scope,
  pattern,
  maker: { name: row.made_by, principal: row.made_principal, door: row.made_door },
})

/** The rule that allows this use, the oldest first; it counts the use. The caller has locked the workspace. */
export function* useRule(workspaceId: string, use: AskedUse): Transaction<Rule | undefined> {
  const rows = yield* sql<RuleRow>(
    `select ${COLUMNS} from permission_rules r where r.workspace_id = $1 and r.tool = $2 order by r.made_at, r.id`,
    [workspaceId, use.tool],
  )
  const row = rows.find((each) => coversUse(each, use))
  if (row === undefined) return undefined
  yield* sql('update permission_rules set used = used + 1, last_used_at = now_ms() where id = $1', [row.id])
  return toRule(row)
}

/** The stored rule with this pattern; undefined where there is none. */
export function* findRule(workspaceId: string, { tool, scope, pattern }: RulePattern): Transaction<Rule | undefined> {
  const rows = yield* sql<RuleRow>(
    `select ${COLUMNS} from permission_rules r
     where r.workspace_id = $1 and r.tool = $2 and r.scope = $3 and r.pattern = $4`,
    [workspaceId, tool, scope, pattern],
  )
  return rows[0] && toRule(rows[0])
}

/** Stores the rule. The caller has locked the workspace, found no such rule, and writes the log. */
export function* insertRule(workspaceId: string, rule: RulePattern, maker: Answerer): Transaction<Rule> {
  const counted = yield* sql<{ rules: number }>(
    'select count(*) as rules from permission_rules where workspace_id = $1',
    [workspaceId],
  )
  if ((counted[0]?.rules ?? 0) >= RULES_MAX) {
    const message = `this workspace has ${RULES_MAX} rules, and no more are kept: revoke some, or allow this once`
    throw new MoleculeError('unsupported_operation', message)
  }
  const { tool, scope, pattern } = rule
  yield* sql(
    `insert into permission_rules (id, workspace_id, tool, scope, pattern, made_by, made_principal, made_door, made_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, now_ms())`,
    [ulid(), workspaceId, tool, scope, pattern, maker.name, maker.principal, maker.door],
  )
  const stored = yield* findRule(workspaceId, rule)
  if (stored === undefined) throw new MoleculeError('internal', 'a rule that was just stored is gone')
  return stored
}

/** The answer that a rule gives: in the name of its maker, through no door. */
export const answererOfRule = ({ maker }: Rule): Answerer => ({ ...maker, door: RULE_DOOR })

function* revoke(workspaceId: string, id: string, revoker: Answerer): Transaction<void> {
  yield* together([lockWorkspace(workspaceId)])
  const [row] = yield* sql<RulePattern>(
    'delete from permission_rules where id = $1 and workspace_id = $2 returning tool, scope, pattern',
    [id, workspaceId],
  )
  if (row === undefined) throw new MoleculeError('not_found', `there is no rule ${JSON.stringify(id.slice(0, 100))}`)
  const { tool, pattern } = row
  const entry: NewLogEntry = { items: [{ t: 'rule', change: 'revoked', tool, pattern, answerer: revoker }] }
  yield* together(recordChange({ workspaceId, entries: [entry] }))
}
