/** The name of a workspace, for the texts about a delegation to it. */

/** An SQL expression, for an expression for the workspace's id. Null when the workspace is deleted. */
export const workspaceName = (workspaceId: string): string =>
  `(select w.name from workspaces w where w.id = ${workspaceId})`
