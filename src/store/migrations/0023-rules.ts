/**
 * Schema 23: rules, an owner's "always allow". `scope` says how `pattern` is compared with the subject of an ask: exact,
 * prefix or folder. `used`: how many asks the rule has answered. The index finds the rules for an ask.
 */
export const schema0023 = `
create table permission_rules (
  id text primary key,
  workspace_id text not null,
  tool text not null,
  scope text not null,
  pattern text not null,
  made_by text not null,
  made_principal text not null,
  made_door text not null,
  made_at bigint not null,
  used bigint not null default 0,
  last_used_at bigint
);
create index permission_rules_of_tool on permission_rules (workspace_id, tool);
`
