/** Schema 17: what is known about the log-in of a workspace's agent, as JSON; null = nothing is known to be wrong. */
export const schema0017 = `
alter table workspaces add column login_state text;
`
